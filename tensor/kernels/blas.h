#pragma once

#include <mutex>
#include <string>

/// The BLAS library behind gemm: which it is, and how many threads it takes. OpenBLAS comes in three builds: one
/// without threads, one with a pool of its own, one on OpenMP, which shares its pool with our kernels.
namespace carousel::kernels {

std::string blas_name();    ///< "OpenBLAS 0.3.21 (openmp)", "none (plain products)"
std::string blas_kernel();  ///< the processor that OpenBLAS chose its code for: "Haswell"

/// Lets the BLAS calls of this scope take all threads, or one. Products that take several wait for each other, asleep,
/// when user threads ask for them at once: OpenBLAS itself would spin. For the seam; others call gemm.
class BlasThreads {
 public:
  explicit BlasThreads(bool many);
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  std::unique_lock<std::mutex> turn_;
  int previous_ = 0;
  bool was_dynamic_ = false;
};

/// Open one around a parallel region whose body calls gemm: it keeps a BLAS with a pool of its own to one thread a
/// caller. (A BLAS on OpenMP sees the region by itself.)
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
};

}  // namespace carousel::kernels
