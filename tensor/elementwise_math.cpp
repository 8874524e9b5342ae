#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/operands.h>

#include <cmath>

namespace carousel {
namespace {

Tensor unary(const Tensor& x, kernels::RunBody<2> body) {
  Tensor out(x.shape(), x.dtype());
  run_over<2>(out, body, {out, x});
  return out;
}

/// f(x) for float32 and float64. `f` is a generic function of one number, without state.
template <class F>
Tensor floating(std::string_view operation, const Tensor& x, F) {
  check_defined(operation, x);
  return unary(x, dispatch_floating(operation, x.dtype(), [](auto type) -> kernels::RunBody<2> {
                 return kernels::map1<decltype(type), F, decltype(type)>;
               }));
}

/// The same, also for int64.
template <class F>
Tensor numeric(std::string_view operation, const Tensor& x, F) {
  check_defined(operation, x);
  return unary(x, dispatch_numeric(operation, x.dtype(), [](auto type) -> kernels::RunBody<2> {
                 return kernels::map1<decltype(type), F, decltype(type)>;
               }));
}

/// Integers wrap around, as in the arithmetic of two operands.
template <class T>
T negative(T v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(-static_cast<uint64_t>(v));
  } else {
    return -v;
  }
}

template <class T>
T squared(T v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(v));
  } else {
    return v * v;
  }
}

template <class T>
T sigmoid_of(T v) {
  const T e = std::exp(-std::abs(v));  // never overflows
  return (v >= 0 ? T{1} : e) / (1 + e);
}

template <class T>
T gelu_of(T v) {
  constexpr T scale = T(0.79788456080286535588);  // sqrt(2 / pi)
  return v / 2 * (1 + std::tanh(scale * (v + T(0.044715) * v * v * v)));
}

}  // namespace

Tensor operator-(const Tensor& x) { return neg(x); }

Tensor neg(const Tensor& x) {
  return numeric("neg", x, [](auto v) { return negative(v); });
}
Tensor abs(const Tensor& x) {
  return numeric("abs", x, [](auto v) { return std::is_integral_v<decltype(v)> && v < 0 ? negative(v) : std::abs(v); });
}
Tensor sign(const Tensor& x) {
  return numeric("sign", x, [](auto v) { return v != v ? v : decltype(v)((v > 0) - (v < 0)); });
}
Tensor square(const Tensor& x) {
  return numeric("square", x, [](auto v) { return squared(v); });
}
Tensor relu(const Tensor& x) {
  return numeric("relu", x, [](auto v) { return v < 0 ? decltype(v){0} : v; });
}
Tensor reciprocal(const Tensor& x) {
  return floating("reciprocal", x, [](auto v) { return 1 / v; });
}
Tensor exp(const Tensor& x) {
  return floating("exp", x, [](auto v) { return std::exp(v); });
}
Tensor expm1(const Tensor& x) {
  return floating("expm1", x, [](auto v) { return std::expm1(v); });
}
Tensor log(const Tensor& x) {
  return floating("log", x, [](auto v) { return std::log(v); });
}
Tensor log1p(const Tensor& x) {
  return floating("log1p", x, [](auto v) { return std::log1p(v); });
}
Tensor sqrt(const Tensor& x) {
  return floating("sqrt", x, [](auto v) { return std::sqrt(v); });
}
Tensor rsqrt(const Tensor& x) {
  return floating("rsqrt", x, [](auto v) { return 1 / std::sqrt(v); });
}
Tensor sin(const Tensor& x) {
  return floating("sin", x, [](auto v) { return std::sin(v); });
}
Tensor cos(const Tensor& x) {
  return floating("cos", x, [](auto v) { return std::cos(v); });
}
Tensor tanh(const Tensor& x) {
  return floating("tanh", x, [](auto v) { return std::tanh(v); });
}
Tensor sigmoid(const Tensor& x) {
  return floating("sigmoid", x, [](auto v) { return sigmoid_of(v); });
}
Tensor softplus(const Tensor& x) {
  return floating("softplus", x, [](auto v) { return (v > 0 ? v : 0) + std::log1p(std::exp(-std::abs(v))); });
}
Tensor silu(const Tensor& x) {
  return floating("silu", x, [](auto v) { return v * sigmoid_of(v); });
}
Tensor gelu(const Tensor& x) {
  return floating("gelu", x, [](auto v) { return gelu_of(v); });
}
Tensor erf(const Tensor& x) {
  return floating("erf", x, [](auto v) { return std::erf(v); });
}

}  // namespace carousel
