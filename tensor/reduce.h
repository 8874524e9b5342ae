#pragma once

#include <carousel/tensor/tensor.h>

/// Reductions: new row-major tensors of x's dtype where nothing else is said. `axes` are the axes to reduce (negative
/// from the end; IndexError outside, ValueError for one twice), which go, or stay with size 1 under `keep_axes`. sum,
/// max, min and the arg forms take float32, float64 and int64, the others floating types only; ValueError otherwise.
/// float sums are accumulated pairwise in fixed chunks, so that they neither drift nor depend on the thread count.
namespace carousel {

/// Whether reduced axes stay, with size 1: write `keep_axes`.
struct KeepAxes {
  bool keep = false;
};
inline constexpr KeepAxes keep_axes{true};

Tensor sum(const Tensor& x);  ///< over everything: shape []; 0 when empty
Tensor sum(const Tensor& x, const Dims& axes, KeepAxes keep = {});
Tensor mean(const Tensor& x);  ///< over everything: shape []; NaN over no elements
Tensor mean(const Tensor& x, const Dims& axes, KeepAxes keep = {});

// Over no elements, max, min and the arg forms throw ShapeError that names the axis. NaN wins over every number; the
// first of equal values wins.
Tensor max(const Tensor& x);  ///< over everything: shape []
Tensor max(const Tensor& x, int64_t axis, KeepAxes keep = {});
Tensor min(const Tensor& x);  ///< over everything: shape []
Tensor min(const Tensor& x, int64_t axis, KeepAxes keep = {});
Tensor argmax(const Tensor& x);                                    ///< position in row-major order: shape [], int64
Tensor argmax(const Tensor& x, int64_t axis, KeepAxes keep = {});  ///< positions along the axis, int64
Tensor argmin(const Tensor& x, int64_t axis, KeepAxes keep = {});  ///< positions along the axis, int64

/// M + log sum exp(x - M) along `axis`, M the maximum: -inf for a row of -inf or of no elements, +inf when one is +inf.
Tensor logsumexp(const Tensor& x, int64_t axis, KeepAxes keep = {});
/// exp(x - M) / sum exp(x - M) along `axis`: x's shape. A row of nothing but -inf gives zeros: nothing may be chosen.
Tensor softmax(const Tensor& x, int64_t axis);
/// (x - M) - log sum exp(x - M) along `axis`: x's shape; exact however large M is. A row of nothing but -inf stays
/// -inf.
Tensor log_softmax(const Tensor& x, int64_t axis);

/// Sums `x` down to `shape`: the backward of broadcasting. `x` itself when the shapes are equal. Throws ShapeError
/// unless `shape` broadcasts to x's shape.
Tensor sum_to(const Tensor& x, const Shape& shape);

/// sum_i x_i^2 over everything, in double, so that float inputs do not overflow. Throws ValueError unless floating.
double sum_of_squares(const Tensor& x);
double norm(const Tensor& x);  ///< the square root of that: the 2-norm

}  // namespace carousel
