#pragma once

#include <carousel/tensor/tensor.h>

/// Comparisons and logic: results are bool tensors of the broadcast shape. Comparisons take any two tensors of one
/// dtype (ValueError otherwise) and follow IEEE: NaN is unequal to everything.
namespace carousel {

Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, double b);
Tensor less(const Tensor& a, double b);
Tensor greater(const Tensor& a, double b);

Tensor logical_not(const Tensor& a);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);

/// `condition ? a : b`, all three broadcast. `condition` is bool, a and b have one dtype.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

bool all_finite(const Tensor& x);                       ///< true for int64 and bool
bool all(const Tensor& x);                              ///< of a bool tensor; true when empty
bool any(const Tensor& x);                              ///< of a bool tensor; false when empty
bool identical(const Tensor& a, const Tensor& b);       ///< same dtype, shape and bits
/// |a - b| <= absolute + relative |b| everywhere, and NaN or infinity only where the other has the same.
bool all_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);

}  // namespace carousel
