#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

// New row-major tensors. Negative sizes throw ShapeError, values that the dtype cannot hold ValueError.

Tensor full(const Shape& shape, double value, DType dtype = DType::float32);  ///< `value` everywhere
Tensor zeros(const Shape& shape, DType dtype = DType::float32);               ///< 0 everywhere
Tensor ones(const Shape& shape, DType dtype = DType::float32);                ///< 1 everywhere
Tensor zeros_like(const Tensor& x);                                           ///< of x's shape and dtype
Tensor ones_like(const Tensor& x);                                            ///< of x's shape and dtype
/// [0, 1, ..., count - 1], numeric. Throws ValueError for a negative count or bool.
Tensor arange(int64_t count, DType dtype = DType::int64);
/// `count` evenly spaced numbers, both ends included. Throws ValueError for a negative count or unless floating.
Tensor linspace(double first, double last, int64_t count, DType dtype = DType::float32);
Tensor eye(int64_t size, DType dtype = DType::float32);  ///< the identity matrix [size, size]
/// 1 on and below diagonal `k` (k = 0 the main one, above it k > 0), 0 elsewhere: shape [rows, columns], bool.
Tensor lower_triangle(int64_t rows, int64_t columns, int64_t k = 0);

}  // namespace carousel
