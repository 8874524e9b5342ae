#pragma once

#include <carousel/tensor/tensor.h>

/// Reductions. `axes` are the axes to reduce (negative from the end, no axis twice); `keep_axes` leaves them with
/// size 1. float sums are accumulated pairwise in fixed chunks, so that they neither drift nor depend on the thread
/// count.
namespace carousel {

struct KeepAxes {
  bool keep = false;
};
inline constexpr KeepAxes keep_axes{true};

Tensor sum(const Tensor& x);                                      ///< over everything: shape []; 0 when empty
Tensor sum(const Tensor& x, const Dims& axes, KeepAxes keep = {});
Tensor mean(const Tensor& x);                                     ///< floating only; NaN over no elements
Tensor mean(const Tensor& x, const Dims& axes, KeepAxes keep = {});

// Over no elements, max, min and the arg forms throw ShapeError that names the axis. NaN wins over every number; the
// first of equal values wins.
Tensor max(const Tensor& x);
Tensor max(const Tensor& x, int64_t axis, KeepAxes keep = {});
Tensor min(const Tensor& x);
Tensor min(const Tensor& x, int64_t axis, KeepAxes keep = {});
Tensor argmax(const Tensor& x);                                   ///< position in row-major order, int64
Tensor argmax(const Tensor& x, int64_t axis, KeepAxes keep = {});
Tensor argmin(const Tensor& x, int64_t axis, KeepAxes keep = {});

/// log sum exp, shifted by the maximum: -inf for a row of -inf or of no elements, +inf when one is +inf.
Tensor logsumexp(const Tensor& x, int64_t axis, KeepAxes keep = {});
/// exp(x - logsumexp(x)). A row of nothing but -inf gives zeros: nothing may be chosen.
Tensor softmax(const Tensor& x, int64_t axis);
/// x - logsumexp(x). A row of nothing but -inf stays -inf.
Tensor log_softmax(const Tensor& x, int64_t axis);

/// Sums `x` down to `shape`, which broadcasts to x's shape: the backward of broadcasting. `x` itself when the shapes
/// are equal.
Tensor sum_to(const Tensor& x, const Shape& shape);
double norm(const Tensor& x);  ///< sqrt of the sum of squares, in double; no overflow for float inputs

}  // namespace carousel
