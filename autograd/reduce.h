#pragma once

#include <carousel/autograd/variable.h>
#include <carousel/tensor/reduce.h>

/// Differentiable forms of tensor/reduce.h.
namespace carousel {

Variable sum(const Variable& x);
Variable sum(const Variable& x, const Dims& axes, KeepAxes keep = {});
Variable mean(const Variable& x);
Variable mean(const Variable& x, const Dims& axes, KeepAxes keep = {});
Variable max(const Variable& x, int64_t axis, KeepAxes keep = {});  ///< the first largest gets the gradient
Variable min(const Variable& x, int64_t axis, KeepAxes keep = {});
Variable logsumexp(const Variable& x, int64_t axis, KeepAxes keep = {});  ///< zero gradient to a row of -inf
Variable softmax(const Variable& x, int64_t axis);
Variable log_softmax(const Variable& x, int64_t axis);

}  // namespace carousel
