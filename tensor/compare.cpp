#include <carousel/tensor/compare.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/operands.h>

#include <cmath>
#include <cstring>
#include <functional>

namespace carousel {
namespace {

template <class F>
kernels::RunBody<3> compare_body(DType dtype) {
  return dispatch_all(
      dtype, [](auto type) -> kernels::RunBody<3> { return kernels::map2<bool, F, decltype(type), decltype(type)>; });
}

Tensor map_two(std::string_view operation, const Tensor& a, const Tensor& b, kernels::RunBody<3> body) {
  Tensor out(a.shape() == b.shape() ? a.shape() : broadcast_shapes(operation, a.shape(), b.shape()), DType::boolean);
  run_over<3>(out, body, {out, a, b});
  return out;
}

template <class F>
Tensor compare(std::string_view operation, const Tensor& a, const Tensor& b) {
  check_same_dtype(operation, a, b);
  return map_two(operation, a, b, compare_body<F>(a.dtype()));
}

template <class F>
Tensor compare(std::string_view operation, const Tensor& a, double b) {
  check_defined(operation, a);
  Scalar scalar(operation, b, a.dtype());
  Tensor out(a.shape(), DType::boolean);
  run_over<3>(out, compare_body<F>(a.dtype()), {out, a, scalar});
  return out;
}

void check_bool(std::string_view operation, const Tensor& x) {
  check_defined(operation, x);
  check<ValueError>(x.dtype() == DType::boolean, operation, "needs bool: got {}", to_string(x.dtype()));
}

template <class F>
Tensor logical(std::string_view operation, const Tensor& a, const Tensor& b) {
  check_bool(operation, a);
  check_bool(operation, b);
  return map_two(operation, a, b, kernels::map2<bool, F, bool, bool>);
}

/// A predicate of floating numbers on every type: what holds for a double holds for an integer.
template <class F>
Tensor classify(std::string_view operation, const Tensor& x, F) {
  check_defined(operation, x);
  Tensor out(x.shape(), DType::boolean);
  run_over<2>(
      out,
      dispatch_all(x.dtype(), [](auto type) -> kernels::RunBody<2> { return kernels::map1<bool, F, decltype(type)>; }),
      {out, x});
  return out;
}

struct Choose {
  template <class T>
  T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

/// Whether two numbers are as good as equal; a NaN matches a NaN, an infinity itself.
bool is_close(double a, double b, double relative, double absolute) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::abs(a - b) <= absolute + relative * std::abs(b);
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return compare<std::equal_to<>>("equal", a, b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return compare<std::not_equal_to<>>("not_equal", a, b); }
Tensor less(const Tensor& a, const Tensor& b) { return compare<std::less<>>("less", a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return compare<std::less_equal<>>("less_equal", a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return compare<std::greater<>>("greater", a, b); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return compare<std::greater_equal<>>("greater_equal", a, b); }
Tensor equal(const Tensor& a, double b) { return compare<std::equal_to<>>("equal", a, b); }
Tensor less(const Tensor& a, double b) { return compare<std::less<>>("less", a, b); }
Tensor greater(const Tensor& a, double b) { return compare<std::greater<>>("greater", a, b); }

Tensor logical_not(const Tensor& a) {
  check_bool("logical_not", a);
  return classify("logical_not", a, [](auto v) { return !v; });
}
Tensor logical_and(const Tensor& a, const Tensor& b) { return logical<std::logical_and<>>("logical_and", a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return logical<std::logical_or<>>("logical_or", a, b); }

Tensor isnan(const Tensor& x) {
  return classify("isnan", x, [](auto v) { return v != v; });
}
Tensor isfinite(const Tensor& x) {
  return classify("isfinite", x, [](auto v) { return std::isfinite(static_cast<double>(v)); });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_bool("where", condition);
  check_same_dtype("where", a, b);
  const Shape shape = broadcast_shapes("where", condition.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  Tensor out(shape, a.dtype());
  run_over<4>(out,
              dispatch_all(a.dtype(),
                           [](auto type) -> kernels::RunBody<4> {
                             using T = decltype(type);
                             return kernels::map3<T, Choose, bool, T, T>;
                           }),
              {out, condition, a, b});
  return out;
}

bool all_finite(const Tensor& x) {
  check_defined("all_finite", x);
  if (!is_floating(x.dtype())) return true;
  return dispatch_floating("all_finite", x.dtype(), [&](auto type) {
    constexpr auto infinite = [](auto v) { return !std::isfinite(v); };
    return !any_over(x, kernels::any1<decltype(infinite), decltype(type)>);
  });
}

bool all(const Tensor& x) {
  check_bool("all", x);
  return !any_over(x, kernels::any1<std::logical_not<>, bool>);
}

bool any(const Tensor& x) {
  check_bool("any", x);
  return any_over(x, kernels::any1<std::identity, bool>);
}

bool identical(const Tensor& a, const Tensor& b) {
  check_defined("identical", a);
  check_defined("identical", b);
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(Operand(x).data, Operand(y).data, static_cast<size_t>(x.numel()) * size_of(x.dtype())) == 0;
}

bool all_close(const Tensor& a, const Tensor& b, double relative, double absolute) {
  check_same_dtype("all_close", a, b);
  const Shape shape = broadcast_shapes("all_close", a.shape(), b.shape());
  const std::vector<double> x = a.to(DType::float64).expand(shape).to_vector<double>();
  const std::vector<double> y = b.to(DType::float64).expand(shape).to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!is_close(x[i], y[i], relative, absolute)) return false;
  }
  return true;
}

}  // namespace carousel
