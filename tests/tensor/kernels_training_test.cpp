#include "kernels_common.h"

#include <carousel/tensor/kernels/adam.h>
#include <carousel/tensor/kernels/dropout.h>
#include <carousel/tensor/kernels/norm.h>
#include <carousel/tensor/kernels/root_step.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

template <class T>
class TrainingKernels : public ForFloats<T> {};
TYPED_TEST_SUITE(TrainingKernels, Floats);

TYPED_TEST(TrainingKernels, AdamEqualsItsFormula) {
  using T = TypeParam;
  for_each_target([] {
    for (const bool decoupled : {false, true}) {
      const int64_t n = 77;
      auto w = random_numbers<T>(n, 1), m = std::vector<T>(n), v = std::vector<T>(n);
      auto plain_w = w, plain_m = m, plain_v = v;
      for (int64_t step = 1; step <= 5; ++step) {
        const auto g = random_numbers<T>(n, 10 + static_cast<uint32_t>(step));
        const AdamStep s{.lr = 0.01,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-8,
                         .weight_decay = 0.1,
                         .decoupled = decoupled,
                         .step = step,
                         .gradient_factor = 0.3};
        adam(n, s, g.data(), w.data(), m.data(), v.data());
        plain::adam(n, s, g.data(), plain_w.data(), plain_m.data(), plain_v.data());
      }
      // Five updates of at most 0.02: the weights (up to 4) round twice each time; the moments three times.
      EXPECT_LE(largest_difference(w, plain_w), 5 * 2 * 4 * rounding<T>);
      EXPECT_LE(largest_difference(m, plain_m), 5 * 3 * rounding<T>);
      EXPECT_LE(largest_difference(v, plain_v), 5 * 3 * 4 * rounding<T>);
    }
  });
}

TYPED_TEST(TrainingKernels, AdamsFirstStepHasTheSizeOfTheRate) {
  using T = TypeParam;
  T w = 1, g = static_cast<T>(-1e-3), m = 0, v = 0;  // m / sqrt(v) = -1, whatever the gradient's size
  adam(1, {.lr = 0.25, .beta1 = 0.9, .beta2 = 0.999, .eps = 0, .weight_decay = 0.5, .decoupled = true, .step = 1}, &g,
       &w, &m, &v);
  EXPECT_NEAR(w, 1 - 0.25 * 0.5 + 0.25, 8 * rounding<T>);
}

TYPED_TEST(TrainingKernels, RootStepEqualsItsFormula) {
  using T = TypeParam;
  for_each_target([] {
    for (const auto& [n, with_velocity] : {std::pair<int64_t, bool>{77, false}, {77, true}, {100001, true}}) {
      auto w = random_numbers<T>(n, 1), v = std::vector<T>(n), u = std::vector<T>(n);
      auto plain_w = w, plain_v = v, plain_u = u;
      for (uint32_t step = 1; step <= 5; ++step) {
        const auto g = random_numbers<T>(n, 10 + step);
        const RootStep s{.lr = 0.01,
                         .keep = 0.95,
                         .add = 0.05,
                         .eps = 1e-8,
                         .momentum = 0.9,
                         .weight_decay = n == 77 ? 0.1 : 0,  // of very many sums g + decay w, some cancel
                         .gradient_factor = 0.3};
        root_step(n, s, g.data(), w.data(), v.data(), with_velocity ? u.data() : nullptr);
        plain::root_step(n, s, g.data(), plain_w.data(), plain_v.data(), with_velocity ? plain_u.data() : nullptr);
      }
      // Directions are at most 1 / sqrt(0.05) = 4.5, velocities five of them, of six roundings each; weights are up to
      // 5, round once a step and take a hundredth of that.
      EXPECT_LE(largest_difference(w, plain_w), 5 * (5 + 0.01 * 5 * 4.5 * 6) * rounding<T>);
      EXPECT_LE(largest_difference(u, plain_u), 5 * 4.5 * 6 * rounding<T>);
      EXPECT_LE(largest_difference(v, plain_v), 5 * 4 * rounding<T>);
    }
  });
}

TYPED_TEST(TrainingKernels, RootStepDoesNotDependOnTheThreadCount) {
  using T = TypeParam;
  const int64_t n = 100001;
  const auto g = random_numbers<T>(n, 2);
  expect_same_for_every_thread_count([&] {
    auto w = random_numbers<T>(n, 1), v = std::vector<T>(n, T{1}), u = std::vector<T>(n, T{0.5});
    root_step(n, {.lr = 0.1, .keep = 1, .add = 1, .eps = 1e-10, .momentum = 0.9}, g.data(), w.data(), v.data(),
              u.data());
    return std::vector{w, v, u};
  });
}

TYPED_TEST(TrainingKernels, SumOfSquaresAndScaleEqualTheirPlainTwins) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t n : {0, 1, 15, 64, 1001, 40001}) {
      auto x = random_numbers<T>(n, 5), plain_x = x;
      const double expected = plain::sum_of_squares(n, x.data());
      EXPECT_NEAR(sum_of_squares(n, x.data()), expected, 2e-12 * expected);  // of norm.h
      scale(n, x.data(), 0.3);
      plain::scale(n, plain_x.data(), 0.3);
      EXPECT_LE(largest_difference(x, plain_x), 5 * 0.3 * 3 * rounding<T>);  // two roundings and one, of up to 5 * 0.3
    }
  });
}

TEST(TrainingKernelsFloat, SumOfSquaresDoesNotOverflow) {
  const std::vector<float> x(100, 1e30F);
  for_each_target([&] { EXPECT_NEAR(sum_of_squares(100, x.data()), 1e62, 1e62 * 1e-7); });  // 1e30F is off by 4e-8
}

TYPED_TEST(TrainingKernels, SumOfSquaresDoesNotDependOnTheThreadCount) {
  const auto x = random_numbers<TypeParam>(100001, 6);
  expect_same_for_every_thread_count([&] { return sum_of_squares(static_cast<int64_t>(x.size()), x.data()); });
}

TYPED_TEST(TrainingKernels, DropoutKeepsTheRightShareAndScalesIt) {
  using T = TypeParam;
  const int64_t steps = 20, rows = 10, features = 501;
  const std::vector<T> x(steps * rows * features, 1);
  std::vector<T> y(x.size());
  const StepLayout layout{.step_stride = rows * features, .row_stride = features};
  dropout({.probability = 0.25, .key = 9, .first_step = 0}, steps, rows, features, x.data(), layout, y.data(), layout);
  const auto dropped = std::count(y.begin(), y.end(), T{0});
  EXPECT_EQ(static_cast<int64_t>(x.size()) - dropped, std::count(y.begin(), y.end(), static_cast<T>(1 / 0.75)));
  EXPECT_NEAR(dropped / 100200.0, 0.25, 0.007);  // five standard deviations: 5 sqrt(0.25 * 0.75 / 100200)
}

TYPED_TEST(TrainingKernels, DropoutDependsOnKeyStepRowAndFeatureOnly) {
  using T = TypeParam;
  const int64_t steps = 4, rows = 3, features = 10;
  const std::vector<T> x(steps * rows * features, 1);
  const StepLayout time_major{.step_stride = rows * features, .row_stride = features};
  const StepLayout batch_major{.step_stride = features, .row_stride = steps * features};
  std::vector<T> whole(x.size()), turned(x.size()), one(rows * features), other(x.size());
  const DropoutMask mask{.probability = 0.5, .key = 123, .first_step = 0};
  dropout(mask, steps, rows, features, x.data(), time_major, whole.data(), time_major);
  dropout(mask, steps, rows, features, x.data(), time_major, turned.data(), batch_major);
  for (int64_t t = 0; t < steps; ++t) {
    dropout({.probability = 0.5, .key = 123, .first_step = t}, 1, rows, features, x.data(), time_major, one.data(),
            time_major);
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t j = 0; j < features; ++j) {
        EXPECT_EQ(one[b * features + j], whole[(t * rows + b) * features + j]);
        EXPECT_EQ(turned[(b * steps + t) * features + j], whole[(t * rows + b) * features + j]);
      }
    }
  }
  dropout({.probability = 0.5, .key = 124, .first_step = 0}, steps, rows, features, x.data(), time_major, other.data(),
          time_major);
  EXPECT_NE(whole, other);
}

TYPED_TEST(TrainingKernels, DropoutHasTheMaskOfThePlainOne) {
  using T = TypeParam;
  const int64_t steps = 3, rows = 5;
  for_each_target([] {
    for (const int64_t features : {1, 4, 10, 63, 64, 65, 130}) {
      const auto x = random_numbers<T>(steps * rows * features, 1);
      const StepLayout layout{.step_stride = rows * features, .row_stride = features};
      for (const double probability : {0.0, 0.3, 0.999}) {
        const DropoutMask mask{.probability = probability, .key = 0x123456789abcdefULL, .first_step = 1LL << 33};
        std::vector<T> fast(x.size()), slow(x.size());
        dropout(mask, steps, rows, features, x.data(), layout, fast.data(), layout);
        plain::dropout(mask, steps, rows, features, x.data(), layout, slow.data(), layout);
        EXPECT_EQ(fast, slow) << features << " features, probability " << probability;
      }
    }
  });
}

TYPED_TEST(TrainingKernels, DropoutDropsNanAndKeepsAllAtZeroProbability) {
  using T = TypeParam;
  const std::vector<T> x = random_numbers<T>(33, 8), nans(33, std::numeric_limits<T>::quiet_NaN());
  std::vector<T> y(33);
  const StepLayout layout{.step_stride = 33, .row_stride = 33};
  dropout({.probability = 0, .key = 1, .first_step = 0}, 1, 1, 33, x.data(), layout, y.data(), layout);
  EXPECT_EQ(x, y);
  dropout({.probability = 0.9, .key = 1, .first_step = 0}, 1, 1, 33, nans.data(), layout, y.data(), layout);
  EXPECT_TRUE(std::count(y.begin(), y.end(), T{0}) > 0);
}

}  // namespace
}  // namespace carousel::kernels
