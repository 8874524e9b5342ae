#pragma once

#include <carousel/autograd/variable.h>

/// Differentiable forms of tensor/index.h: same shapes, same errors (IndexError for a position outside, ShapeError).
/// Each saves the index, which has no gradient.
namespace carousel {

Variable take_rows(const Variable& table, const Tensor& index);  ///< [V, ..], [..] -> index.shape + [..]
Variable scatter_rows(const Variable& source, const Tensor& index, int64_t rows);
Variable gather(const Variable& x, int64_t axis, const Tensor& index);
Variable scatter_add(const Variable& x, int64_t axis, const Tensor& index, const Variable& source);

}  // namespace carousel
