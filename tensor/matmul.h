#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

/// Matrix product over the last two axes: [.., M, K] x [.., K, N] -> [.., M, N]; the leading axes broadcast. Any
/// view works: row- and column-major matrices are read as they are, others are copied first. Both operands
/// float32 or float64. K = 0 gives zeros. When `b` is one matrix, the rows of the result lie in memory in the order of
/// those of `a`, so that a time-major view stays one. Throws ShapeError naming both shapes, ValueError for dtypes.
Tensor matmul(const Tensor& a, const Tensor& b);

/// c += a b in place, one matrix each; c [M, N] row-major. Throws as matmul does, ShapeError too when c does not fit,
/// ValueError when it is not row-major or may share memory with a or b. Returns c.
Tensor& add_matmul_(Tensor& c, const Tensor& a, const Tensor& b);

/// y = x W^T + b in one pass: x [M, D], W [H, D], b [H] or undefined -> [M, H]. Throws as matmul does.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace carousel
