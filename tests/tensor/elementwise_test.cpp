#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <cmath>

#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;
using test::scrambled;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// `op` on tensors against `plain` on numbers, element by element, for views that broadcast.
template <class T, class Op, class Plain>
void check_binary(const char* name, const Op& op, const Plain& plain) {
  Rng rng(11);
  const std::vector<std::pair<Shape, Shape>> shapes = {{{3, 4}, {3, 4}}, {{2, 3, 4}, {4}},    {{5, 1}, {1, 3}},
                                                       {{}, {2, 2}},     {{2, 1, 3}, {4, 1}}, {{7}, {}},
                                                       {{0, 3}, {1, 3}}, {{2, 0}, {2, 1}},    {{1, 1}, {1}}};
  for (const auto& [a_shape, b_shape] : shapes) {
    for (bool dense : {true, false}) {
      Tensor a = scrambled<T>(a_shape, rng), b = scrambled<T>(b_shape, rng);
      b = where(equal(b, 0), full({}, 3, b.dtype()), b);  // for division; b is dense now
      if (!dense && b.rank() == 2) b = b.transpose(0, 1).contiguous().transpose(0, 1);
      if (dense) a = a.contiguous();
      const Tensor y = op(a, b);
      ASSERT_EQ(y.shape(), broadcast_shapes(name, a_shape, b_shape));
      ASSERT_TRUE(y.is_contiguous());
      for_each_index(y.shape(), [&](const Dims& i) {
        ASSERT_EQ(at<T>(y, i), plain(at<T>(a, i), at<T>(b, i))) << name << " at " << to_string(i);
      });
    }
  }
}

template <class T>
void check_arithmetic() {
  check_binary<T>("add", add, [](T a, T b) { return a + b; });
  check_binary<T>("sub", sub, [](T a, T b) { return a - b; });
  check_binary<T>("mul", mul, [](T a, T b) { return a * b; });
  check_binary<T>("div", div, [](T a, T b) { return a / b; });
  check_binary<T>("maximum", maximum, [](T a, T b) { return std::max(a, b); });
  check_binary<T>("minimum", minimum, [](T a, T b) { return std::min(a, b); });
}

TEST(Elementwise, ArithmeticBroadcastsLikeANaiveLoop) {
  check_arithmetic<float>();
  check_arithmetic<double>();
  check_arithmetic<int64_t>();
}

TEST(Elementwise, LargeOperandsAreCoveredOnce) {  // in parallel, over chunks that begin within rows
  const Tensor a = arange(333 * 301).reshape({333, 301}), b = arange(301), c = arange(333).unsqueeze(1);
  const Tensor y = a * b + c;
  const std::vector<int64_t> values = y.to_vector<int64_t>();
  for (int64_t i = 0; i < y.numel(); ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i * (i % 301) + i / 301);
  EXPECT_TRUE(identical(add(a.transpose(0, 1), a.transpose(0, 1)), (a * 2).transpose(0, 1)));
}

template <class T>
void check_scalars() {
  Rng rng(12);
  const Tensor x = scrambled<T>({3, 4}, rng);
  const auto check = [&](const Tensor& y, auto plain) {
    for_each_index(x.shape(), [&](const Dims& i) { ASSERT_EQ(at<T>(y, i), plain(at<T>(x, i))); });
  };
  check(x + 2, [](T v) { return v + T{2}; });
  check(x - 2, [](T v) { return v - T{2}; });
  check(x * 3, [](T v) { return v * T{3}; });
  check(x / 4, [](T v) { return v / T{4}; });
  check(2 + x, [](T v) { return T{2} + v; });
  check(2 - x, [](T v) { return T{2} - v; });
  check(3 * x, [](T v) { return T{3} * v; });
  check(90 / (abs(x) + 1), [](T v) { return T{90} / (std::abs(v) + 1); });
  check(clamp(x, -7, 9), [](T v) { return std::clamp(v, T{-7}, T{9}); });
  check(clamp(x, -inf, 9), [](T v) { return std::min(v, T{9}); });
  check(-x, [](T v) { return -v; });
  check(abs(x), [](T v) { return std::abs(v); });
  check(sign(x), [](T v) { return T((v > 0) - (v < 0)); });
  check(square(x), [](T v) { return v * v; });
  check(relu(x), [](T v) { return std::max(v, T{0}); });
}

TEST(Elementwise, ScalarsStandOnEitherSide) {
  check_scalars<float>();
  check_scalars<double>();
  check_scalars<int64_t>();
}

/// Largest difference between op(x) and `plain` in long double, in units of eps (|plain| + 1).
template <class T, class Op, class Plain>
double error_of(const Op& op, const Plain& plain, double low, double high) {
  Rng rng(13);
  const Tensor x = rng.uniform({40, 2}, low, high, dtype_of<T>()).transpose(0, 1);
  const Tensor y = op(x);
  long double worst = 0;
  for_each_index(x.shape(), [&](const Dims& i) {
    const long double expected = plain(static_cast<long double>(at<T>(x, i)));
    worst = std::max(worst, std::abs(at<T>(y, i) - expected) / (std::abs(expected) + 1));
  });
  return static_cast<double>(worst / std::numeric_limits<T>::epsilon());
}

template <class T>
void check_mathematics() {
  using L = long double;
  // Library functions are good to an ulp or two; what is made of several, with sums of rounded parts, to a few.
  constexpr double library = 2, made = 4;
  const auto unary = [](Tensor (*op)(const Tensor&)) { return op; };
  EXPECT_LT(error_of<T>(
                unary(exp), [](L v) { return std::exp(v); }, -5, 3),
            library);
  EXPECT_LT(error_of<T>(
                unary(expm1), [](L v) { return std::expm1(v); }, -5, 3),
            library);
  EXPECT_LT(error_of<T>(
                unary(log), [](L v) { return std::log(v); }, 0.01, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(log1p), [](L v) { return std::log1p(v); }, -0.9, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(sqrt), [](L v) { return std::sqrt(v); }, 0, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(rsqrt), [](L v) { return 1 / std::sqrt(v); }, 0.1, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(reciprocal), [](L v) { return 1 / v; }, 0.1, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(sin), [](L v) { return std::sin(v); }, -9, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(cos), [](L v) { return std::cos(v); }, -9, 9),
            library);
  EXPECT_LT(error_of<T>(
                unary(tanh), [](L v) { return std::tanh(v); }, -4, 4),
            library);
  EXPECT_LT(error_of<T>(
                unary(erf), [](L v) { return std::erf(v); }, -4, 4),
            library);
  EXPECT_LT(error_of<T>(
                unary(sigmoid), [](L v) { return 1 / (1 + std::exp(-v)); }, -9, 9),
            made);
  EXPECT_LT(error_of<T>(
                unary(softplus), [](L v) { return std::log1p(std::exp(v)); }, -9, 9),
            made);
  EXPECT_LT(error_of<T>(
                unary(silu), [](L v) { return v / (1 + std::exp(-v)); }, -9, 9),
            made);
  const auto plain_gelu = [](L v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / 3.141592653589793238463L) * (v + 0.044715L * v * v * v)));
  };
  EXPECT_LT(error_of<T>(unary(gelu), plain_gelu, -4, 4), made);
  const auto cube_root = [](const Tensor& x) { return pow(x, 1.0 / 4); };
  EXPECT_LT(error_of<T>(
                cube_root, [](L v) { return std::pow(v, 0.25L); }, 0, 9),
            library);
}

TEST(Elementwise, MathematicsMatchesLongDouble) {
  check_mathematics<float>();
  check_mathematics<double>();
}

/// What `kernel` makes of x, which is row-major.
template <class T>
Tensor by_kernel(void (*kernel)(int64_t, const T*, T*), const Tensor& x) {
  Tensor y(x.shape(), x.dtype());
  kernel(x.numel(), x.data<T>(), y.mutable_data<T>());
  return y;
}

template <class T>
void check_rounding_of_kernels() {
  const Tensor x = Rng(15).normal({301, 333}, 0, 3, dtype_of<T>());
  EXPECT_TRUE(identical(exp(x), by_kernel<T>(kernels::exp, x)));
  EXPECT_TRUE(identical(tanh(x), by_kernel<T>(kernels::tanh, x)));
  EXPECT_TRUE(identical(sigmoid(x), by_kernel<T>(kernels::sigmoid, x)));
  for (const auto& function : {exp, tanh, sigmoid, silu, gelu}) {
    EXPECT_TRUE(identical(function(x.transpose(0, 1)), function(x).transpose(0, 1)));
    const Slice third{.start = 1, .step = 3};
    EXPECT_TRUE(identical(function(x.slice(1, third)), function(x).slice(1, third)));
    const Tensor row = x.slice(0, {.stop = 1});
    EXPECT_TRUE(identical(function(row.expand({70, 333})), function(row).expand({70, 333})));
  }
}

TEST(Elementwise, RoundsAsTheFusedKernelsDo) {  // so that a fused layer and its unrolled definition agree
  check_rounding_of_kernels<float>();
  check_rounding_of_kernels<double>();
}

TEST(Elementwise, Extremes) {
  const auto values = [](const Tensor& x) { return x.to_vector<double>(); };
  const Tensor x = Tensor::from({-inf, -1000, 0, 1000, inf}, {5}, DType::float64);
  EXPECT_EQ(values(sigmoid(x)), std::vector<double>({0, 0, 0.5, 1, 1}));
  EXPECT_EQ(values(softplus(x)), std::vector<double>({0, 0, std::log(2.0), 1000, inf}));
  EXPECT_EQ(values(relu(x)), std::vector<double>({0, 0, 0, 1000, inf}));
  EXPECT_EQ(values(tanh(x)), std::vector<double>({-1, -1, 0, 1, 1}));
  EXPECT_EQ(sigmoid(Tensor::scalar(-100)).item<float>(), std::exp(-100.0F));  // exp(100) would overflow
  EXPECT_NEAR(sigmoid(Tensor::scalar(-700, DType::float64)).item() / std::exp(-700.0), 1, 1e-15);  // not 0
  EXPECT_NEAR(softplus(Tensor::scalar(-700, DType::float64)).item() / std::exp(-700.0), 1, 1e-15);
}

TEST(Elementwise, NanIsNeverLost) {
  const Tensor none = full({3}, nan), one = ones({3});
  Tensor (*const functions[])(const Tensor&) = {neg,     abs,      sign, square, reciprocal, exp, expm1,
                                                log,     log1p,    sqrt, rsqrt,  sin,        cos, tanh,
                                                sigmoid, softplus, relu, silu,   gelu,       erf};
  for (const auto& function : functions) EXPECT_TRUE(all(isnan(function(none))));
  for (const auto& function : {add, sub, mul, div, maximum, minimum}) {
    EXPECT_TRUE(all(isnan(function(none, one))));
    EXPECT_TRUE(all(isnan(function(one, none))));
  }
  EXPECT_TRUE(all(isnan(clamp(none, 0, 1))));
}

TEST(Elementwise, IntegersWrapAroundAndDivideTowardsZero) {
  const Tensor lowest = full({1}, -0x1p63, DType::int64);
  const auto value = [](const Tensor& x) { return x.item<int64_t>(); };
  EXPECT_EQ(value(-lowest), INT64_MIN);
  EXPECT_EQ(value(abs(lowest)), INT64_MIN);
  EXPECT_EQ(value(lowest - 1), INT64_MAX);
  EXPECT_EQ(value(lowest / -1), INT64_MIN);
  EXPECT_EQ(value(lowest * lowest), 0);
  EXPECT_EQ(value(square(lowest)), 0);
  EXPECT_EQ(value(full({}, -7, DType::int64) / 2), -3);
  EXPECT_EQ(div(zeros({0}, DType::int64), zeros({0}, DType::int64)).numel(), 0);
  expect_error<ValueError>("[div] an int64 divisor must not be 0: got one in shape [2]",
                           [] { div(arange(2), arange(2)); });
  expect_error<ValueError>("[div] an int64 divisor must not be 0: got 0", [] { arange(2) / 0; });
}

TEST(Elementwise, ErrorsNameOperationRuleAndValues) {
  const Tensor single = zeros({2, 3}), twice = zeros({2, 3}, DType::float64), whole = zeros({2, 3}, DType::int64);
  const Tensor mask = zeros({2, 3}, DType::boolean);
  expect_error<ValueError>("[add] operands must have one dtype: got float32 and float64", [&] { single + twice; });
  expect_error<ValueError>("[mul] operands must have one dtype: got int64 and bool", [&] { whole* mask; });
  expect_error<ValueError>("[sub] needs numbers: got bool", [&] { mask - mask; });
  expect_error<ValueError>("[add] needs numbers: got bool", [&] { mask + 1; });
  expect_error<ValueError>("[exp] needs float32 or float64: got int64", [&] { exp(whole); });
  expect_error<ValueError>("[pow] needs float32 or float64: got int64", [&] { pow(whole, 2); });
  expect_error<ValueError>("[relu] needs numbers: got bool", [&] { relu(mask); });
  expect_error<ShapeError>("[div] shapes must be equal or broadcast: got [2, 3] and [2]", [&] { single / zeros({2}); });
  expect_error<ValueError>("[mul] a number for int64 must be whole and fit into 64 bits: got 0.5",
                           [&] { whole * 0.5; });
  expect_error<ValueError>("[clamp] low must not exceed high: got 2 and 1", [&] { clamp(single, 2, 1); });
  expect_error<ValueError>("[clamp] low must not exceed high: got nan and 1", [&] { clamp(single, nan, 1); });
  expect_error<ValueError>("[add] needs a tensor: got an undefined one", [&] { single + Tensor(); });
  expect_error<ValueError>("[tanh] needs a tensor: got an undefined one", [] { tanh(Tensor()); });
}

}  // namespace
}  // namespace carousel
