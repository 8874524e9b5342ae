#pragma once

#include <cstdint>

namespace carousel::kernels {

struct DropoutMask {
  double probability;  // in [0, 1)
  uint64_t key;
  int64_t first_step;  // the number of the first of the steps
};

/// Where element (step, row, 0) of an array lies: features are neighbours.
struct StepLayout {
  int64_t step_stride, row_stride;
};

/// y = x / (1 - p) where the mask keeps, 0 where it drops; dropped with probability p. The mask is a pure function of
/// (key, first_step + step, row, feature): four features share a Philox block numbered (2^63 + step, row, feature / 4),
/// rows below 2^32. Backward is the same call on the gradient; nothing is saved. y may be x.
///
/// Parallel over (step, row); the thread count does not change results. One rounding. A dropped NaN becomes 0.
template <class T>
void dropout(const DropoutMask& mask, int64_t steps, int64_t rows, int64_t features, const T* x, StepLayout x_layout,
             T* y, StepLayout y_layout);

namespace plain {
template <class T>
void dropout(const DropoutMask& mask, int64_t steps, int64_t rows, int64_t features, const T* x, StepLayout x_layout,
             T* y, StepLayout y_layout);
}  // namespace plain

}  // namespace carousel::kernels
