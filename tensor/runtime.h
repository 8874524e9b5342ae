#pragma once

#include <string>

namespace carousel {

/// Threads for kernels and BLAS together. The default is what the process may use: its affinity mask and its
/// container's CPU quota (rounded up). A child that the process forks computes with one thread, because OpenMP's pool
/// stays behind in the parent. `set_threads` throws ValueError outside [1, 1024].
int threads();
void set_threads(int count);

/// What threads() is by default: more than so many threads take turns on the processors.
int available_threads();

/// While one lives, subnormal numbers (below 1.2e-38 in float32, 2.2e-308 in float64) count as zeros, as arguments and
/// as results, in the thread that made it and in those that compute for it. Processors take a hundred cycles or more
/// for each of them; where gates and softmaxes saturate they are many. For training, which does not see the difference,
/// and never for a study of how gradients vanish: those are the numbers that it is about. Ends on the thread on which
/// it began. What other threads of BLAS do is BLAS's affair; processors other than x86-64 and arm64 keep their mode.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t before_;  // the mode of the thread
};

/// What this build computes with, for reports.
struct RuntimeInfo {
  std::string blas;         ///< "OpenBLAS 0.3.21 (openmp)" or "none (plain products)"
  std::string blas_kernel;  ///< the kernel that OpenBLAS chose, "Haswell"
  std::string simd;         ///< the SIMD target that Highway chose, "AVX3_DL"
  int threads = 1;
};
RuntimeInfo runtime_info();
std::string to_string(const RuntimeInfo& info);  ///< one line

/// Checks small BLAS products and one of 128 x 128 matrices, in float and double; throws ValueError naming the BLAS and
/// its kernel when one is wrong (old OpenBLAS kernels are, on some new processors). The first matrix product of a
/// process calls it; it takes less than a millisecond.
void check_blas();

}  // namespace carousel
