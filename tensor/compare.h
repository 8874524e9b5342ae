#pragma once

#include <carousel/tensor/tensor.h>

/// Comparisons and logic: results are new bool tensors of the broadcast shape (ShapeError when there is none).
/// Comparisons take any two tensors of one dtype (ValueError otherwise), or a tensor and a number that its dtype can
/// hold, and follow IEEE: NaN is unequal to everything. An undefined tensor is a ValueError.
namespace carousel {

Tensor equal(const Tensor& a, const Tensor& b);          ///< a == b
Tensor not_equal(const Tensor& a, const Tensor& b);      ///< a != b
Tensor less(const Tensor& a, const Tensor& b);           ///< a < b
Tensor less_equal(const Tensor& a, const Tensor& b);     ///< a <= b
Tensor greater(const Tensor& a, const Tensor& b);        ///< a > b
Tensor greater_equal(const Tensor& a, const Tensor& b);  ///< a >= b
Tensor equal(const Tensor& a, double b);
Tensor less(const Tensor& a, double b);
Tensor greater(const Tensor& a, double b);

Tensor logical_not(const Tensor& a);                   ///< of bool; ValueError otherwise
Tensor logical_and(const Tensor& a, const Tensor& b);  ///< of bool; ValueError otherwise
Tensor logical_or(const Tensor& a, const Tensor& b);   ///< of bool; ValueError otherwise
Tensor isnan(const Tensor& x);                         ///< false for int64 and bool
Tensor isfinite(const Tensor& x);                      ///< neither infinite nor NaN; true for int64 and bool

/// `condition ? a : b`, all three broadcast (ShapeError otherwise). `condition` is bool, a and b have one dtype, which
/// the result has too (ValueError otherwise).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

bool all_finite(const Tensor& x);                  ///< true for int64 and bool
bool all(const Tensor& x);                         ///< of bool (ValueError otherwise); true when empty
bool any(const Tensor& x);                         ///< of bool (ValueError otherwise); false when empty
bool identical(const Tensor& a, const Tensor& b);  ///< same dtype, shape and bits
/// |a - b| <= absolute + relative |b| everywhere, and NaN or infinity only where the other has the same. Shapes
/// broadcast (ShapeError otherwise); one dtype, any (ValueError otherwise).
bool all_close(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8);

}  // namespace carousel
