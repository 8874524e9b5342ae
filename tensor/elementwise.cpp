#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/operands.h>

#include <cmath>

namespace carousel {
namespace {

// What is done to one pair of numbers. Integers wrap around on overflow, as in NumPy: the work is done unsigned.

template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == -1) return Sub{}(T{0}, a);  // the quotient of the lowest number overflows
    }
    return a / b;
  }
};
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return b != b ? b : (b > a ? b : a);
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return b != b ? b : (b < a ? b : a);
  }
};
struct Pow {
  template <class T>
  T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};
struct Clamp {
  template <class T>
  T operator()(T x, T low, T high) const {
    return x < low ? low : (x > high ? high : x);
  }
};

/// The loop of a binary operation for a type, numeric or, for pow, floating.
template <class F>
kernels::RunBody<3> binary_body(std::string_view operation, DType dtype) {
  const auto body = [](auto type) -> kernels::RunBody<3> {
    using T = decltype(type);
    return kernels::map2<T, F, T, T>;
  };
  if constexpr (std::is_same_v<F, Pow>) {
    return dispatch_floating(operation, dtype, body);
  } else {
    return dispatch_numeric(operation, dtype, body);
  }
}

void check_divisor(std::string_view operation, const Tensor& b) {
  if (b.dtype() != DType::int64) return;
  constexpr auto is_zero = [](int64_t value) { return value == 0; };
  check<ValueError>(!any_over(b, kernels::any1<decltype(is_zero), int64_t>), operation,
                    "an int64 divisor must not be 0: got one in shape {}", b.shape());
}

template <class F>
Tensor binary(std::string_view operation, const Tensor& a, const Tensor& b) {
  check_same_dtype(operation, a, b);
  if constexpr (std::is_same_v<F, Div>) check_divisor(operation, b);
  const auto body = binary_body<F>(operation, a.dtype());
  Tensor out(a.shape() == b.shape() ? a.shape() : broadcast_shapes(operation, a.shape(), b.shape()), a.dtype());
  run_over<3>(out, body, {out, a, b});
  return out;
}

template <class F>
Tensor binary(std::string_view operation, const Tensor& a, double b) {
  check_defined(operation, a);
  const auto body = binary_body<F>(operation, a.dtype());
  Scalar scalar(operation, b, a.dtype());
  if constexpr (std::is_same_v<F, Div>) {
    check<ValueError>(a.dtype() != DType::int64 || b != 0, operation, "an int64 divisor must not be 0: got {}", b);
  }
  Tensor out(a.shape(), a.dtype());
  run_over<3>(out, body, {out, a, scalar});
  return out;
}

template <class F>
Tensor binary(std::string_view operation, double a, const Tensor& b) {
  check_defined(operation, b);
  const auto body = binary_body<F>(operation, b.dtype());
  Scalar scalar(operation, a, b.dtype());
  Tensor out(b.shape(), b.dtype());
  run_over<3>(out, body, {out, scalar, b});
  return out;
}

template <class F>
Tensor& in_place(std::string_view operation, Tensor& a, const Tensor& b) {
  check_writable(operation, a);
  check_same_dtype(operation, a, b);
  if constexpr (std::is_same_v<F, Div>) check_divisor(operation, b);
  check<ShapeError>(a.shape() == b.shape() || broadcast_shapes(operation, a.shape(), b.shape()) == a.shape(), operation,
                    "the operand must broadcast to the target's shape: got {} and {}", b.shape(), a.shape());
  const auto body = binary_body<F>(operation, a.dtype());
  const Tensor apart = apart_from(a, b);
  a.storage()->bump_version();
  run_over<3>(a, body, {a, a, apart});
  return a;
}

template <class F>
Tensor& in_place(std::string_view operation, Tensor& a, double b) {
  check_writable(operation, a);
  const auto body = binary_body<F>(operation, a.dtype());
  Scalar scalar(operation, b, a.dtype());
  a.storage()->bump_version();
  run_over<3>(a, body, {a, a, scalar});
  return a;
}

/// A bound for clamp; an infinite one is no bound for integers.
template <class T>
T bound(double value) {
  if (std::is_integral_v<T> && std::isinf(value)) {
    return value < 0 ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  return scalar_cast<T>("clamp", value);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return binary<Add>("add", a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return binary<Sub>("sub", a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return binary<Mul>("mul", a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return binary<Div>("div", a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return binary<Maximum>("maximum", a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary<Minimum>("minimum", a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return binary<Pow>("pow", a, b); }
Tensor pow(const Tensor& a, double exponent) { return binary<Pow>("pow", a, exponent); }

Tensor clamp(const Tensor& x, double low, double high) {
  check_defined("clamp", x);
  check<ValueError>(low <= high, "clamp", "low must not exceed high: got {} and {}", low, high);
  return dispatch_numeric("clamp", x.dtype(), [&](auto type) {
    using T = decltype(type);
    Scalar low_bound(bound<T>(low)), high_bound(bound<T>(high));
    Tensor out(x.shape(), x.dtype());
    run_over<4>(out, kernels::map3<T, Clamp, T, T, T>, {out, x, low_bound, high_bound});
    return out;
  });
}

Tensor operator+(const Tensor& a, double b) { return binary<Add>("add", a, b); }
Tensor operator-(const Tensor& a, double b) { return binary<Sub>("sub", a, b); }
Tensor operator*(const Tensor& a, double b) { return binary<Mul>("mul", a, b); }
Tensor operator/(const Tensor& a, double b) { return binary<Div>("div", a, b); }
Tensor operator+(double a, const Tensor& b) { return binary<Add>("add", a, b); }
Tensor operator-(double a, const Tensor& b) { return binary<Sub>("sub", a, b); }
Tensor operator*(double a, const Tensor& b) { return binary<Mul>("mul", a, b); }
Tensor operator/(double a, const Tensor& b) { return binary<Div>("div", a, b); }

Tensor& add_(Tensor& a, const Tensor& b) { return in_place<Add>("add_", a, b); }
Tensor& sub_(Tensor& a, const Tensor& b) { return in_place<Sub>("sub_", a, b); }
Tensor& mul_(Tensor& a, const Tensor& b) { return in_place<Mul>("mul_", a, b); }
Tensor& div_(Tensor& a, const Tensor& b) { return in_place<Div>("div_", a, b); }
Tensor& add_(Tensor& a, double b) { return in_place<Add>("add_", a, b); }
Tensor& mul_(Tensor& a, double b) { return in_place<Mul>("mul_", a, b); }

}  // namespace carousel
