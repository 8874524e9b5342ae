#pragma once

#include <carousel/autograd/variable.h>
#include <carousel/tensor/reduce.h>

/// Differentiable forms of tensor/reduce.h: same shapes, same errors (IndexError for an axis, ShapeError for max and
/// min over no elements, ValueError for integers). A reduction over axes gives x's shape without them, or with size 1
/// under `keep_axes`.
namespace carousel {

Variable sum(const Variable& x);  ///< saves shapes only
Variable sum(const Variable& x, const Dims& axes, KeepAxes keep = {});
Variable mean(const Variable& x);  ///< saves shapes only
Variable mean(const Variable& x, const Dims& axes, KeepAxes keep = {});

// Save the position of what was chosen, which gets the whole gradient: the first of equal elements.
Variable max(const Variable& x);
Variable max(const Variable& x, int64_t axis, KeepAxes keep = {});
Variable min(const Variable& x);
Variable min(const Variable& x, int64_t axis, KeepAxes keep = {});

Variable logsumexp(const Variable& x, int64_t axis, KeepAxes keep = {});  ///< saves x; zero gradient to a row of -inf
Variable softmax(const Variable& x, int64_t axis);                        ///< saves the result
Variable log_softmax(const Variable& x, int64_t axis);                    ///< saves the result

}  // namespace carousel
