#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

Tensor full(const Shape& shape, double value, DType dtype = DType::float32);
Tensor zeros(const Shape& shape, DType dtype = DType::float32);
Tensor ones(const Shape& shape, DType dtype = DType::float32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
Tensor arange(int64_t count, DType dtype = DType::int64);  ///< [0, 1, ..., count - 1]; throws ValueError if negative
Tensor linspace(double first, double last, int64_t count, DType dtype = DType::float32);  ///< both ends included
Tensor eye(int64_t size, DType dtype = DType::float32);
/// 1 on and below diagonal `k` (k = 0 the main one), shape [rows, columns], bool.
Tensor lower_triangle(int64_t rows, int64_t columns, int64_t k = 0);

}  // namespace carousel
