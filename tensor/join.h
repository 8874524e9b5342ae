#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

/// Joins tensors of any one dtype, [.., N_i, ..] each, along an existing axis: a new [.., sum N_i, ..]. Throws
/// ShapeError unless ranks and all other sizes agree, ValueError when there are no parts or dtypes differ, IndexError
/// for the axis.
Tensor concatenate(std::span<const Tensor> parts, int64_t axis);
/// Joins P tensors of one shape and any one dtype along a new axis of size P before `axis`, in [-rank-1, rank] of the
/// parts: a new tensor. Throws ShapeError when shapes differ, ValueError when there are no parts or dtypes differ,
/// IndexError for the axis.
Tensor stack(std::span<const Tensor> parts, int64_t axis);
/// The reverse of concatenate: views of `x` with the given sizes (not negative) along `axis`. Throws ShapeError unless
/// they add up to its size, IndexError for the axis.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int64_t axis);

}  // namespace carousel
