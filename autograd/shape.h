#pragma once

#include <carousel/autograd/variable.h>

/// Differentiable forms of the views of tensor/tensor.h, of its `to`, and of tensor/join.h: same shapes, same errors
/// (IndexError for an axis or position, ShapeError for sizes). Nothing is saved but shapes. The gradient of a slice or
/// select is a tensor of x's full size, zero elsewhere: to walk along an axis use `unbind` or `split`.
namespace carousel {

Variable slice(const Variable& x, int64_t axis, Slice range);
Variable select(const Variable& x, int64_t axis, int64_t index);
Variable transpose(const Variable& x, int64_t axis1, int64_t axis2);
Variable permute(const Variable& x, const Dims& axes);
Variable unsqueeze(const Variable& x, int64_t axis);
Variable squeeze(const Variable& x, int64_t axis);
Variable expand(const Variable& x, const Shape& shape);
Variable reshape(const Variable& x, const Shape& shape);
Variable to(const Variable& x, DType dtype);  ///< float32 or float64, else ValueError
Variable concatenate(std::span<const Variable> parts, int64_t axis);
Variable stack(std::span<const Variable> parts, int64_t axis);
Variables split(const Variable& x, std::span<const int64_t> sizes, int64_t axis);
/// The slices x[0], x[1], ... along `axis`, which disappears: one node for all of them, so that backward through T of
/// them costs O(T), where T separate select()s would fill T tensors of full size.
Variables unbind(const Variable& x, int64_t axis);

}  // namespace carousel
