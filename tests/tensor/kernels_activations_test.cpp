#include "kernels_common.h"

#include <carousel/tensor/kernels/activations.h>

namespace carousel::kernels {
namespace {

template <class T>
class Activations : public ForFloats<T> {};
TYPED_TEST_SUITE(Activations, Floats);

template <class T>
constexpr double eps = std::numeric_limits<T>::epsilon();  // the bounds of activations.h are multiples of it

template <class T>
using Forward = void (*)(int64_t, const T*, T*);
template <class T>
using Backward = void (*)(int64_t, const T*, const T*, T*);

template <class T>
std::vector<T> slopes(Backward<T> backward, const std::vector<T>& x) {
  std::vector<T> slope(x.size());
  const std::vector<T> ones(x.size(), 1);
  backward(static_cast<int64_t>(x.size()), x.data(), ones.data(), slope.data());
  return slope;
}

template <class T>
std::vector<T> values(Forward<T> forward, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  forward(static_cast<int64_t>(x.size()), x.data(), y.data());
  return y;
}

using Real = long double;
Real exact_sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real gelu_argument(Real x) { return 2 * std::sqrt(2 / std::acos(Real{-1})) * (x + 0.044715L * x * x * x); }
Real gelu_slope_of_argument(Real x) { return 2 * std::sqrt(2 / std::acos(Real{-1})) * (1 + 3 * 0.044715L * x * x); }
Real exact_silu(Real x) { return x * exact_sigmoid(x); }
Real exact_gelu(Real x) { return x * exact_sigmoid(gelu_argument(x)); }
Real exact_silu_slope(Real x) { return exact_sigmoid(x) * (1 + x * exact_sigmoid(-x)); }
Real exact_gelu_slope(Real x) {
  return exact_sigmoid(gelu_argument(x)) * (1 + x * gelu_slope_of_argument(x) * exact_sigmoid(-gelu_argument(x)));
}

/// |got - exact(x)| <= bound(x, exact(x)) for every x, apart from half a step of the subnormal numbers.
template <class T, class Bound>
void expect_within(const std::vector<T>& got, const std::vector<T>& x, Real (*exact)(Real), const Bound& bound) {
  for (size_t i = 0; i < x.size(); ++i) {
    const Real right = exact(x[i]);
    ASSERT_LE(std::abs(got[i] - right), bound(x[i], right) + std::numeric_limits<T>::denorm_min()) << "x = " << x[i];
  }
}

TYPED_TEST(Activations, StayWithinTheirBoundsOnEveryTarget) {
  using T = TypeParam;
  const double lowest = sizeof(T) == 4 ? -87 : -708;  // below, sigmoid is no normal number
  const auto near = evenly<T>(-8, 8, 100003), wide = evenly<T>(lowest, 50, 100003);
  const auto relative = [](Real, Real y) { return 4 * eps<T> * std::abs(y); };
  const auto of_x = [](Real x, Real) { return 4 * eps<T> * std::abs(x); };
  const auto of_dy = [](Real, Real) { return 16 * eps<T>; };
  for_each_target([&] {
    expect_within(values<T>(silu, wide), wide, exact_silu, relative);
    expect_within(values<T>(silu, near), near, exact_silu, relative);
    expect_within(values<T>(gelu, wide), wide, exact_gelu, of_x);
    expect_within(values<T>(gelu, near), near, exact_gelu, of_x);
    for (const auto& x : {near, wide}) {
      expect_within(slopes<T>(silu_backward, x), x, exact_silu_slope, of_dy);
      expect_within(slopes<T>(gelu_backward, x), x, exact_gelu_slope, of_dy);
      expect_within(slopes<T>(softplus_backward, x), x, exact_sigmoid, relative);
    }
  });
}

TYPED_TEST(Activations, GiveTheLimitsAtExtremesAndKeepNan) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity(), huge = std::numeric_limits<T>::max();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{infinity, huge, -huge, nan, -infinity};
  const auto first = [](std::vector<T> y, int count) { return y.resize(count), y; };
  for_each_target([&] {
    for (const Forward<T> function : {Forward<T>(silu), Forward<T>(gelu)}) {
      const std::vector<T> y = values<T>(function, x);
      EXPECT_EQ(first(y, 3), (std::vector<T>{infinity, huge, 0}));
      EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
    }
    for (const Backward<T> function :
         {Backward<T>(silu_backward), Backward<T>(gelu_backward), Backward<T>(softplus_backward)}) {
      const std::vector<T> slope = slopes<T>(function, x);
      EXPECT_EQ(first(slope, 3), (std::vector<T>{1, 1, 0}));
      EXPECT_TRUE(std::isnan(slope[3]));
      EXPECT_EQ(slope[4], 0);
      EXPECT_TRUE(std::isnan(slopes<T>(function, std::vector<T>(1, nan))[0])) << "in a vector that is not whole";
    }
  });
}

TYPED_TEST(Activations, EqualTheirPlainTwins) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t n : {0, 1, 7, 31, 1000}) {
      const auto x = random_numbers<T>(n, 1, 3), dy = random_numbers<T>(n, 2);
      std::vector<T> got(n), expected(n);
      // Numbers up to 12, and slopes up to 1.2 times gradients up to 4.
      const auto expect_equal = [&](double bound) {
        EXPECT_LE(largest_difference(got, expected), bound * eps<T>) << n;
      };
      silu(n, x.data(), got.data());
      plain::silu(n, x.data(), expected.data());
      expect_equal(2 * 4 * 12);
      gelu(n, x.data(), got.data());
      plain::gelu(n, x.data(), expected.data());
      expect_equal(2 * 4 * 12);
      silu_backward(n, x.data(), dy.data(), got.data());
      plain::silu_backward(n, x.data(), dy.data(), expected.data());
      expect_equal(2 * 16 * 4);
      gelu_backward(n, x.data(), dy.data(), got.data());
      plain::gelu_backward(n, x.data(), dy.data(), expected.data());
      expect_equal(2 * 16 * 4);
      softplus_backward(n, x.data(), dy.data(), got.data());
      plain::softplus_backward(n, x.data(), dy.data(), expected.data());
      expect_equal(2 * 4 * 4);
    }
  });
}

TYPED_TEST(Activations, TheGateIsAProductAndHasBothGradients) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t n : {0, 1, 7, 31, 1000}) {
      const auto y = random_numbers<T>(n, 1), z = random_numbers<T>(n, 2, 3), dout = random_numbers<T>(n, 3);
      std::vector<T> got(n), expected(n), dy(n), dz(n), expected_dy(n), expected_dz(n);
      silu_gate(n, y.data(), z.data(), got.data());
      plain::silu_gate(n, y.data(), z.data(), expected.data());
      silu_gate_backward(n, y.data(), z.data(), dout.data(), dy.data(), dz.data());
      plain::silu_gate_backward(n, y.data(), z.data(), dout.data(), expected_dy.data(), expected_dz.data());
      EXPECT_LE(largest_difference(got, expected), 2 * 4 * 12 * 4 * eps<T>);  // |silu| up to 12, times up to 4
      EXPECT_LE(largest_difference(dy, expected_dy), 2 * 4 * 12 * 4 * eps<T>);
      EXPECT_LE(largest_difference(dz, expected_dz), 2 * 16 * 4 * 4 * eps<T>);
    }
  });
}

TYPED_TEST(Activations, DoNotDependOnTheThreadCount) {
  const auto x = random_numbers<TypeParam>(100001, 4), dy = random_numbers<TypeParam>(100001, 5);
  expect_same_for_every_thread_count([&] {
    std::vector<TypeParam> dx(x.size());
    gelu_backward(static_cast<int64_t>(x.size()), x.data(), dy.data(), dx.data());
    return dx;
  });
}

}  // namespace
}  // namespace carousel::kernels
