#pragma once

#include <carousel/autograd/variable.h>

/// Differentiable forms of tensor/index.h; the index has no gradient.
namespace carousel {

Variable take_rows(const Variable& table, const Tensor& index);
Variable gather(const Variable& x, int64_t axis, const Tensor& index);
Variable scatter_add(const Variable& x, int64_t axis, const Tensor& index, const Variable& source);

}  // namespace carousel
