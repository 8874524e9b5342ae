#include <gtest/gtest.h>

#include "measure.h"
#include "step_cost.h"

namespace carousel::bench {
namespace {

TEST(Growth, SlopeIsThePowerOfThePoints) {
  EXPECT_NEAR(log_log_slope({2, 4, 16}, {12, 48, 768}), 2, 1e-12);  // 3 x^2
  EXPECT_NEAR(log_log_slope({1, 10, 100}, {5, 5, 5}), 0, 1e-12);
  EXPECT_NEAR(log_log_slope({1, 2, 4}, {1, 8, 4}), 1, 1e-12);  // the point in the middle pulls neither up nor down
  EXPECT_THROW(log_log_slope({1}, {1}), ValueError);
  EXPECT_THROW(log_log_slope({1, 2}, {1, 0}), ValueError);
}

// Attention's too: no matrix of scores is kept. What does not grow (weights, moments, their gradients) is small beside
// what does; blocks come in sizes a quarter apart, which moves a point by 10 % at most.
TEST(Growth, MemoryOfATrainingStepIsLinearInTheStepsForEveryKind) {
  for (const std::string& kind : layer_kind_names()) {
    std::vector<double> steps, peaks;
    for (const int64_t t : {64, 128, 256, 512}) {
      const StepCost cost = step_cost({kind, kind, 65, t, 32, 16, 1}, 0);
      steps.push_back(static_cast<double>(t));
      peaks.push_back(static_cast<double>(cost.peak_bytes));
    }
    EXPECT_NEAR(log_log_slope(steps, peaks), 1, 0.1) << kind;
  }
}

// Six layers, of which all but the last are made again. An Elman layer and a decaying memory keep nothing but their
// input and output anyhow.
TEST(Growth, RecomputationLowersTheMemoryOfATrainingStep) {
  const auto ratio = [](const std::string& kind) {
    Workload workload{kind, kind, 65, 128, 32, 16, 6};
    const auto plain = static_cast<double>(step_cost(workload, 0).peak_bytes);
    workload.recompute = true;
    return static_cast<double>(step_cost(workload, 0).peak_bytes) / plain;
  };
  // Measured: 0.47, 0.51, 0.27, 0.37.
  EXPECT_LE(ratio("lstm"), 0.55);
  EXPECT_LE(ratio("gru"), 0.6);
  EXPECT_LE(ratio("ssm"), 0.35);
  EXPECT_LE(ratio("gpt"), 0.45);
  for (const std::string& kind : layer_kind_names()) EXPECT_LE(ratio(kind), 1) << kind;
}

}  // namespace
}  // namespace carousel::bench
