#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/operands.h>

#include <algorithm>

namespace carousel {

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor result(shape, dtype);
  result.fill_(value);
  return result;
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor zeros_like(const Tensor& x) {
  check_defined("zeros_like", x);
  return zeros(x.shape(), x.dtype());
}

Tensor ones_like(const Tensor& x) {
  check_defined("ones_like", x);
  return ones(x.shape(), x.dtype());
}

Tensor arange(int64_t count, DType dtype) {
  check<ValueError>(count >= 0, "arange", "count must not be negative: got {}", count);
  return dispatch_numeric("arange", dtype, [&](auto type) {
    using T = decltype(type);
    Tensor result({count}, dtype);
    T* out = result.template mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(i);
    return result;
  });
}

Tensor linspace(double first, double last, int64_t count, DType dtype) {
  check<ValueError>(count >= 0, "linspace", "count must not be negative: got {}", count);
  return dispatch_floating("linspace", dtype, [&](auto type) {
    using T = decltype(type);
    Tensor result({count}, dtype);
    T* out = result.template mutable_data<T>();
    const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(first + static_cast<double>(i) * step);
    if (count > 1) out[count - 1] = static_cast<T>(last);  // not off by a rounding
    return result;
  });
}

Tensor eye(int64_t size, DType dtype) {
  Tensor result = zeros({size, size}, dtype);
  Tensor diagonal(result.storage(), 0, {size}, {size + 1}, dtype);
  diagonal.fill_(1);
  return result;
}

Tensor lower_triangle(int64_t rows, int64_t columns, int64_t k) {
  Tensor result = zeros({rows, columns}, DType::boolean);
  bool* out = result.mutable_data<bool>();
  const int64_t diagonal = std::clamp(k, -rows, columns);  // beyond, nothing changes any more
  for (int64_t i = 0; i < rows; ++i) {
    std::fill_n(out + i * columns, std::clamp<int64_t>(i + diagonal + 1, 0, columns), true);
  }
  return result;
}

}  // namespace carousel
