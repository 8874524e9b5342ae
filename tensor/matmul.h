#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

/// Matrix product over the last two axes: [.., M, K] x [.., K, N] -> [.., M, N]; the leading axes broadcast. Any
/// view works: row- and column-major matrices go to BLAS as they are, others are copied first. Both operands
/// float32 or float64. K = 0 gives zeros. Throws ShapeError naming both shapes, ValueError for dtypes.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace carousel
