#include "kernels_common.h"

#include <carousel/tensor/kernels/vector_math.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

template <class T>
class VectorMath : public ForFloats<T> {};
TYPED_TEST_SUITE(VectorMath, Floats);

template <class T>
constexpr double bound = sizeof(T) == 4 ? 3e-7 : 1e-15;  // of vector_math.h

template <class T>
using Function = void (*)(int64_t, const T*, T*);

/// `function` against `exact` in long double, over the numbers x.
template <class T, class Exact>
void expect_close(Function<T> function, const Exact& exact, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  function(static_cast<int64_t>(x.size()), x.data(), y.data());
  const long double half_subnormal_step = std::numeric_limits<T>::denorm_min() / 2.0L;
  for (size_t i = 0; i < x.size(); ++i) {
    const long double right = exact(static_cast<long double>(x[i]));
    const long double allowed = bound<T> * std::abs(right) + half_subnormal_step;
    ASSERT_LE(std::abs(static_cast<long double>(y[i]) - right), allowed) << "x = " << x[i] << ", y = " << y[i];
  }
}

long double exact_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double exact_softplus(long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }

/// Both signs of numbers of every magnitude down to the subnormal ones.
template <class T>
std::vector<T> magnitudes() {
  std::vector<T> x;
  for (T value = 16; value > 0; value *= static_cast<T>(0.61)) {
    x.push_back(value);
    x.push_back(-value);
    if (x.size() > 4000) break;
  }
  return x;
}

TYPED_TEST(VectorMath, StaysWithinItsBoundOnEveryTarget) {
  using T = TypeParam;
  const double lowest = sizeof(T) == 4 ? -103.9 : -745.1, highest = sizeof(T) == 4 ? 88.7 : 709.7;
  for_each_target([&] {
    expect_close<T>(
        exp, [](long double x) { return std::exp(x); }, evenly<T>(lowest, highest, 100003));
    expect_close<T>(
        tanh, [](long double x) { return std::tanh(x); }, evenly<T>(-25, 25, 100003));
    expect_close<T>(sigmoid, exact_sigmoid, evenly<T>(lowest, 50, 100003));
    expect_close<T>(softplus, exact_softplus, evenly<T>(lowest, 50, 100003));
    expect_close<T>(
        exp, [](long double x) { return std::exp(x); }, magnitudes<T>());
    expect_close<T>(
        tanh, [](long double x) { return std::tanh(x); }, magnitudes<T>());
    expect_close<T>(sigmoid, exact_sigmoid, magnitudes<T>());
    expect_close<T>(softplus, exact_softplus, magnitudes<T>());
  });
}

TYPED_TEST(VectorMath, GivesTheLimitsAtExtremesAndKeepsNan) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity(), huge = std::numeric_limits<T>::max();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{infinity, huge, -infinity, -huge, 0, T{-0.0}, nan, -nan};
  for_each_target([&] {
    std::vector<T> y(x.size());
    const auto n = static_cast<int64_t>(x.size());
    exp(n, x.data(), y.data());
    EXPECT_EQ((std::vector<T>(y.begin(), y.begin() + 6)), (std::vector<T>{infinity, infinity, 0, 0, 1, 1}));
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
    tanh(n, x.data(), y.data());
    EXPECT_EQ((std::vector<T>(y.begin(), y.begin() + 6)), (std::vector<T>{1, 1, -1, -1, 0, 0}));
    EXPECT_TRUE(std::signbit(y[5])) << "tanh(-0) is -0";
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
    sigmoid(n, x.data(), y.data());
    EXPECT_EQ((std::vector<T>(y.begin(), y.begin() + 6)), (std::vector<T>{1, 1, 0, 0, 0.5, 0.5}));
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
    softplus(n, x.data(), y.data());
    EXPECT_EQ((std::vector<T>(y.begin(), y.begin() + 4)), (std::vector<T>{infinity, huge, 0, 0}));
    EXPECT_NEAR(y[4], std::log(T{2}), bound<T>);
    EXPECT_EQ(y[4], y[5]);
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
  });
}

TYPED_TEST(VectorMath, TouchesNothingBeyondItsEndAndWorksInPlace) {
  using T = TypeParam;
  for_each_target([] {
    for (int64_t n = 0; n <= 35; ++n) {
      std::vector<T> x = random_numbers<T>(n + 1, 1), expected = x;
      plain::tanh(n, x.data(), expected.data());
      tanh(n, x.data(), x.data());
      EXPECT_EQ(x[n], expected[n]);
      EXPECT_LE(largest_difference(x, expected), bound<T>) << n;
    }
  });
}

TYPED_TEST(VectorMath, TanhBackwardIsTheDerivative) {
  using T = TypeParam;
  const int64_t n = 1037;
  const auto y = random_numbers<T>(n, 2, 0.3), dy = random_numbers<T>(n, 3);
  std::vector<T> expected(n), dx(n);
  plain::tanh_backward(n, y.data(), dy.data(), expected.data());
  for_each_target([&] {
    tanh_backward(n, y.data(), dy.data(), dx.data());
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(dx[i], expected[i], 4 * rounding<T> * (1 + y[i] * y[i]) * std::abs(dy[i]));  // three roundings
    }
  });
}

TYPED_TEST(VectorMath, DoesNotDependOnTheThreadCount) {
  using T = TypeParam;
  const auto x = random_numbers<T>(50001, 4);
  expect_same_for_every_thread_count([&] {
    std::vector<T> y(x.size());
    sigmoid(static_cast<int64_t>(x.size()), x.data(), y.data());
    return y;
  });
}

}  // namespace
}  // namespace carousel::kernels
