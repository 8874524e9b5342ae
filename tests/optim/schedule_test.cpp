#include "../nn/expect_error.h"

#include <carousel/optim/schedule.h>
#include <carousel/tensor/error.h>

#include <cmath>
#include <limits>
#include <vector>

namespace carousel {
namespace {

using test::expect_error;

TEST(WarmupCosine, TheFirstUpdateMoves) {  // HD-19 (a), (c)
  const WarmupCosine schedule{.peak = 6e-4, .floor = 6e-5, .warmup = 2000, .end = 600000};
  EXPECT_NEAR(schedule.rate(0), 6e-4 / 2001, 1e-18);
  EXPECT_LT(schedule.rate(1999), 6e-4);
  EXPECT_EQ(schedule.rate(2000), 6e-4);
  EXPECT_EQ(WarmupCosine({.peak = 1, .warmup = 0, .end = 10}).rate(0), 1);
}

TEST(WarmupCosine, WarmupAsLongAsTheWholeDividesNothingByZero) {  // HD-19 (b)
  const WarmupCosine schedule{.peak = 6e-4, .floor = 6e-5, .warmup = 100, .end = 100};
  EXPECT_NEAR(schedule.rate(99), 6e-4 * 100 / 101, 1e-18);
  EXPECT_EQ(schedule.rate(100), 6e-4);
  EXPECT_EQ(schedule.rate(101), 6e-5);
}

TEST(WarmupCosine, FollowsTheCosineAndStaysAtTheFloor) {
  const WarmupCosine schedule{.peak = 1e-3, .end = 100};
  EXPECT_NEAR(schedule.rate(45), 5.7822e-4, 5e-9);  // HD-35
  EXPECT_NEAR(schedule.rate(50), 5e-4, 1e-18);
  EXPECT_EQ(schedule.rate(100), 0);
  EXPECT_EQ(schedule.rate(1000000), 0);
}

TEST(WarmupCosine, RefusesWhatMakesNoSenseAtTheFirstStep) {  // HD-19 (d)
  expect_error<ValueError>([] { WarmupCosine({.peak = 1, .warmup = 200, .end = 100}).rate(0); },
                           {"[WarmupCosine]", "warmup <= end", "200 and 100"});
  expect_error<ValueError>([] { WarmupCosine({.peak = 1, .floor = 2, .end = 100}).rate(0); }, {"floor", "2 and 1"});
  expect_error<ValueError>([] { WarmupCosine({.peak = NAN, .end = 100}).rate(0); }, {"nan"});
  expect_error<ValueError>([] { WarmupCosine({.peak = 1, .warmup = -1, .end = 100}).rate(0); }, {"-1"});
}

TEST(ConstantRate, IsConstant) {
  EXPECT_EQ(ConstantRate{0.25}.rate(0), 0.25);
  EXPECT_EQ(ConstantRate{0.25}.rate(1000), 0.25);
  expect_error<ValueError>([] { ConstantRate{-1}.rate(0); }, {"[ConstantRate]", "-1"});
}

TEST(ConstantRate, WarmsUpFromTheFirstUpdateOn) {  // HD-19
  const ConstantRate schedule{.value = 6e-4, .warmup = 2000};
  EXPECT_NEAR(schedule.rate(0), 6e-4 / 2001, 1e-18);
  EXPECT_NEAR(schedule.rate(999), 6e-4 * 1000 / 2001, 1e-18);
  EXPECT_EQ(schedule.rate(2000), 6e-4);
  expect_error<ValueError>([] { ConstantRate({.value = 1, .warmup = -1}).rate(0); }, {"[ConstantRate]", "-1"});
}

TEST(StepRate, IsTorchRnns) {  // halved every 5 epochs, here of 100 steps
  const StepRate schedule{.initial = 2e-3, .factor = 0.5, .every = 500};
  EXPECT_EQ(schedule.rate(0), 2e-3);
  EXPECT_EQ(schedule.rate(499), 2e-3);
  EXPECT_EQ(schedule.rate(500), 1e-3);
  EXPECT_EQ(schedule.rate(999), 1e-3);
  EXPECT_EQ(schedule.rate(1000), 5e-4);
}

TEST(StepRate, IsCharRnns) {  // 0.97 times after each epoch from the tenth, here of 100 steps
  const StepRate schedule{.initial = 2e-3, .factor = 0.97, .every = 100, .first = 1000};
  EXPECT_EQ(schedule.rate(999), 2e-3);
  EXPECT_NEAR(schedule.rate(1000), 2e-3 * 0.97, 1e-18);
  EXPECT_NEAR(schedule.rate(1099), 2e-3 * 0.97, 1e-18);
  EXPECT_NEAR(schedule.rate(1100), 2e-3 * 0.97 * 0.97, 1e-18);
}

TEST(StepRate, StaysAtTheFloorForEver) {
  const StepRate schedule{.initial = 1, .factor = 0.1, .every = 10, .floor = 0.02};
  EXPECT_DOUBLE_EQ(schedule.rate(10), 0.1);
  EXPECT_EQ(schedule.rate(20), 0.02);
  EXPECT_EQ(schedule.rate(std::numeric_limits<int64_t>::max()), 0.02);
  EXPECT_EQ(StepRate({.initial = 1, .factor = 1, .every = 1}).rate(1000), 1);
}

TEST(StepRate, WarmupAsLongAsTheFirstStepDividesNothingByZero) {  // HD-19 (a) to (d)
  const StepRate schedule{.initial = 6e-4, .factor = 0.1, .every = 100, .floor = 6e-5, .warmup = 100};
  EXPECT_NEAR(schedule.rate(0), 6e-4 / 101, 1e-18);
  EXPECT_NEAR(schedule.rate(99), 6e-4 * 100 / 101, 1e-18);
  EXPECT_NEAR(schedule.rate(100), 6e-5, 1e-18);
  EXPECT_NEAR(schedule.rate(101), 6e-5, 1e-18);
  EXPECT_EQ(StepRate({.initial = 6e-4, .factor = 0.1, .every = 1}).rate(0), 6e-4);
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 0.5, .every = 100, .warmup = 200}).rate(0); },
                           {"[StepRate]", "warmup <= first", "200 and 100"});
}

TEST(StepRate, RefusesWhatMakesNoSense) {
  expect_error<ValueError>([] { StepRate({.initial = NAN, .factor = 0.5, .every = 1}).rate(0); },
                           {"[StepRate]", "nan"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 0, .every = 1}).rate(0); }, {"factor", "0"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 1.5, .every = 1}).rate(0); }, {"factor", "1.5"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = NAN, .every = 1}).rate(0); }, {"factor", "nan"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 0.5, .every = 0}).rate(0); }, {"every", "0"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 0.5, .every = 1, .first = 0}).rate(0); },
                           {"first", "0"});
  expect_error<ValueError>([] { StepRate({.initial = 1, .factor = 0.5, .every = 1, .floor = 2}).rate(0); },
                           {"floor", "2 and 1"});
}

TEST(ExponentialRate, FallsByTheFactorInSoManySteps) {
  const ExponentialRate schedule{.initial = 1e-2, .factor = 0.25, .every = 100, .floor = 1e-3};
  EXPECT_EQ(schedule.rate(0), 1e-2);
  EXPECT_NEAR(schedule.rate(50), 5e-3, 1e-17);
  EXPECT_NEAR(schedule.rate(100), 2.5e-3, 1e-17);
  EXPECT_EQ(schedule.rate(200), 1e-3);
  EXPECT_EQ(schedule.rate(std::numeric_limits<int64_t>::max()), 1e-3);
  EXPECT_NEAR(ExponentialRate({.initial = 1, .factor = 0.9}).rate(2), 0.81, 1e-15);  // PyTorch's ExponentialLR
}

TEST(ExponentialRate, BeginsToFallWhenItIsWarm) {  // HD-19 (a) to (c)
  const ExponentialRate schedule{.initial = 6e-4, .factor = 0.5, .every = 100, .floor = 6e-5, .warmup = 100};
  EXPECT_NEAR(schedule.rate(0), 6e-4 / 101, 1e-18);
  EXPECT_NEAR(schedule.rate(99), 6e-4 * 100 / 101, 1e-18);
  EXPECT_EQ(schedule.rate(100), 6e-4);
  EXPECT_LT(schedule.rate(101), 6e-4);
  EXPECT_NEAR(schedule.rate(200), 3e-4, 1e-18);
}

TEST(ExponentialRate, RefusesWhatMakesNoSense) {
  expect_error<ValueError>([] { ExponentialRate({.initial = 1, .factor = 2}).rate(0); }, {"[ExponentialRate]", "2"});
  expect_error<ValueError>([] { ExponentialRate({.initial = 1, .factor = 0.5, .every = -1}).rate(0); },
                           {"every", "-1"});
  expect_error<ValueError>([] { ExponentialRate({.initial = 1, .factor = 0.5, .warmup = -1}).rate(0); },
                           {"warmup", "-1"});
  expect_error<ValueError>([] { ExponentialRate({.initial = 1, .factor = 0.5, .floor = -1}).rate(0); },
                           {"floor", "-1"});
}

TEST(Schedules, AnyCanBeChosenAtRunTime) {
  const std::vector<Schedule> all = {ConstantRate{.value = 0.5}, StepRate{.initial = 0.5, .factor = 0.5, .every = 4},
                                     ExponentialRate{.initial = 0.5, .factor = 0.5, .every = 4},
                                     WarmupCosine{.peak = 0.5, .end = 8}};
  const std::vector<double> after_four = {0.5, 0.25, 0.25, 0.25};
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(rate(all[i], 0), 0.5) << i;
    EXPECT_NEAR(rate(all[i], 4), after_four[i], 1e-16) << i;
  }
}

TEST(Schedules, AStepBeforeTheFirstIsRefused) {
  expect_error<ValueError>([] { WarmupCosine{.peak = 1, .end = 10}.rate(-1); }, {"[WarmupCosine]", "step", "-1"});
  expect_error<ValueError>([] { ConstantRate{1}.rate(-1); }, {"[ConstantRate]", "step", "-1"});
  expect_error<ValueError>([] { StepRate{.initial = 1, .factor = 1, .every = 1}.rate(-1); }, {"[StepRate]", "-1"});
  expect_error<ValueError>([] { ExponentialRate{.initial = 1, .factor = 1}.rate(-1); }, {"[ExponentialRate]", "-1"});
}

}  // namespace
}  // namespace carousel
