#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

/// Joins along an existing axis; all other sizes and the dtype must agree. Throws ShapeError, ValueError when empty.
Tensor concatenate(std::span<const Tensor> parts, int64_t axis);
/// Joins equal shapes along a new axis before `axis`, in [-rank-1, rank].
Tensor stack(std::span<const Tensor> parts, int64_t axis);
/// Views of the given sizes along `axis`, which must add up to its size (ShapeError).
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int64_t axis);

}  // namespace carousel
