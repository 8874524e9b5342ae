#pragma once

#include <carousel/tensor/kernels/selective_scan.h>

/// Inside the selective scan: what one thread does at a time, all steps of some channels of one row.
namespace carousel::kernels {

inline constexpr int64_t scan_channels = 64;  // of a task; tables of a task are [N, 64], the rest of a row zeros

template <class T>
inline constexpr int64_t scan_lanes = 64 / sizeof(T);  // the most channels that a vector holds

template <class T>
struct ScanTask {
  const ScanShape& shape;
  const ScanInputs<T>& in;
  int64_t row, first, count;  // channels first .. first + count - 1
  const T *a, *b, *c;         // [N, 64] each; b and c only with `fixed`

  int64_t live_steps() const { return shape.live_steps(row); }
  bool cleared(int64_t t) const { return shape.cleared(t, row); }
  /// Where step t of this row begins in a sequence [T, B, width].
  int64_t at(int64_t t, int64_t width) const { return (t * shape.batch + row) * width; }
};

/// What a task's backward adds up: a [N, 64] and d [64]; b and c are [N, 64] with `fixed`, else [T, B, N], of which
/// the task writes its row.
template <class T>
struct ScanSums {
  T *a, *b, *c, *d;
};

inline constexpr int scan_group = 4;  // states that backward takes at a time: what it works in stays in the first cache

/// Memory of one thread.
template <class T>
struct ScanScratch {
  static constexpr int64_t step = scan_group * scan_lanes<T>, block = scan_block * step;

  T* state;            // [N, 64]: of the state, or its gradient
  T* states;           // [17, group, lanes]: before each step of a block, and after the last
  T* decays;           // [16, group, lanes]
  T *sums_b, *sums_c;  // [16, group, lanes]
  T *of_b, *of_a;      // [16, 64]: what has been summed over the states so far

  static constexpr int64_t size(int64_t n) {
    return n * scan_channels + 4 * block + step + 2 * scan_block * scan_channels;
  }
  static ScanScratch in(T* memory, int64_t n) {
    T* const states = memory + n * scan_channels;
    T* const decays = states + block + step;
    T* const of_b = decays + 3 * block;
    return {.state = memory,
            .states = states,
            .decays = decays,
            .sums_b = decays + block,
            .sums_c = decays + 2 * block,
            .of_b = of_b,
            .of_a = of_b + scan_block * scan_channels};
  }
};

void scan_forward(const ScanTask<float>& task, const float* h0, float* y, float* h_last, float* kept,
                  const ScanScratch<float>& scratch);
void scan_forward(const ScanTask<double>& task, const double* h0, double* y, double* h_last, double* kept,
                  const ScanScratch<double>& scratch);
void scan_backward(const ScanTask<float>& task, const float* kept, const float* dy, const float* dh_last,
                   const ScanGradients<float>& out, const ScanSums<float>& sums, const ScanScratch<float>& scratch);
void scan_backward(const ScanTask<double>& task, const double* kept, const double* dy, const double* dh_last,
                   const ScanGradients<double>& out, const ScanSums<double>& sums, const ScanScratch<double>& scratch);

}  // namespace carousel::kernels
