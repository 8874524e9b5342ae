#include "../nn/expect_error.h"

#include <carousel/optim/schedule.h>
#include <carousel/tensor/error.h>

#include <cmath>

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

TEST(Schedules, AStepBeforeTheFirstIsRefused) {
  expect_error<ValueError>([] { WarmupCosine{.peak = 1, .end = 10}.rate(-1); }, {"[WarmupCosine]", "step", "-1"});
  expect_error<ValueError>([] { ConstantRate{1}.rate(-1); }, {"[ConstantRate]", "step", "-1"});
}

}  // namespace
}  // namespace carousel
