#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/activations.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/kernels/vector_math.h>
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

/// The same for an `f(n, at)` of whole arrays, at[0] the result and at[1] x. What the fused kernels compute too is made
/// by their functions here, so that both round alike.
template <class F>
Tensor floating_arrays(std::string_view operation, const Tensor& x, F) {
  check_defined(operation, x);
  return unary(x, dispatch_floating(operation, x.dtype(), [](auto type) -> kernels::RunBody<2> {
                 return kernels::map_arrays<decltype(type), 1, F>;
               }));
}

/// f(x), also for int64.
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
  return floating_arrays("exp", x, [](auto n, auto at) { kernels::exp(n, at[1], at[0]); });
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
  return floating_arrays("tanh", x, [](auto n, auto at) { kernels::tanh(n, at[1], at[0]); });
}
Tensor sigmoid(const Tensor& x) {
  return floating_arrays("sigmoid", x, [](auto n, auto at) { kernels::sigmoid(n, at[1], at[0]); });
}
Tensor softplus(const Tensor& x) {
  return floating_arrays("softplus", x, [](auto n, auto at) { kernels::softplus(n, at[1], at[0]); });
}
Tensor silu(const Tensor& x) {
  return floating_arrays("silu", x, [](auto n, auto at) { kernels::silu(n, at[1], at[0]); });
}
Tensor gelu(const Tensor& x) {
  return floating_arrays("gelu", x, [](auto n, auto at) { kernels::gelu(n, at[1], at[0]); });
}
Tensor erf(const Tensor& x) {
  return floating("erf", x, [](auto v) { return std::erf(v); });
}

}  // namespace carousel
