#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>
#include <cmath>

#include "expect_error.h"
#include "sequence_suite.h"

/// The values of every member of the suite, and what it does with states, masks and wrong input.
namespace carousel::test {
namespace {

TEST_P(SequenceSuite, WholeEqualsStepByStepOver200Steps) {
  const Tensor x = random({2, 200, layer_->input_size()}, 9);
  State state = random_state(*layer_, 2).detach();
  const SequenceResult whole = layer_->forward(x, state);
  double worst = 0;
  for (int64_t t = 0; t < 200; ++t) {
    StepResult result = layer_->step(x.select(1, t), state);
    worst = std::max(worst, max(abs(result.output.value() - whole.output.value().select(1, t))).item());
    state = result.state.detach();
  }
  EXPECT_LE(worst, 1e-10);
  for (const auto& [name, value] : state.values()) {
    EXPECT_TRUE(all_close(value.value(), whole.state[name].value(), 0, 1e-10)) << name;
  }
}

TEST_P(SequenceSuite, AResetRowEqualsAFreshStart) {
  const Tensor x = random({2, 6, layer_->input_size()}, 11);
  Tensor reset = zeros({2, 6}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 2, .stop = 3}).fill_(1);
  const Tensor y = layer_->forward(x, random_state(*layer_, 2), {.reset = reset}).output.value();
  const Tensor fresh = layer_->forward(x.slice(1, {.start = 2}), layer_->initial_state(2)).output.value();
  // The same sums over at most 6 steps of numbers near 1, added in another order: some dozens of roundings of 1e-16.
  EXPECT_TRUE(all_close(y.select(0, 1).slice(0, {.start = 2}), fresh.select(0, 1), 0, 1e-14));
}

void expect_finite(const Everything& all) {
  for (const auto& [name, value] : all) {
    EXPECT_TRUE(!value.defined() || all_finite(value)) << name;
  }
}

TEST_P(SequenceSuite, AResetRescuesARowWhoseStateIsNotFinite) {
  const int64_t steps = 5;
  const Tensor x = random({3, steps, layer_->input_size()}, 17);
  for (const double bad : {double{NAN}, double{INFINITY}}) {
    for (const bool fused : {true, false}) {
      SCOPED_TRACE(testing::Message() << bad << (fused ? ", fused" : ", unrolled"));
      State state = random_state(*layer_, 3);
      for (const auto& [name, value] : state.values()) {
        Tensor numbers = value.value();
        numbers.select(0, -1).fill_(bad);  // the row that is reset before its first step
      }
      const SequenceOptions options{.reset = some_resets(3, steps)};
      expect_finite(everything(*layer_, x, options, fused, state));
    }
  }
}

TEST_P(SequenceSuite, WhatStandsBehindTheEndOfARowDoesNotMatter) {
  const int64_t steps = 5;
  const Tensor lengths = Tensor::from(std::vector<int64_t>{steps, 2, 0}, {3});
  const Tensor x = random({3, steps, layer_->input_size()}, 18);
  Tensor padded = x.clone();
  padded.select(0, 1).slice(0, {.start = 2}).fill_(NAN);
  padded.select(0, 2).fill_(INFINITY);
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "unrolled");
    const auto results = everything(*layer_, padded, {.lengths = lengths}, fused);
    expect_finite(results);
    expect_close(results, everything(*layer_, x, {.lengths = lengths}, fused), 0);
  }
}

TEST_P(SequenceSuite, ARowOfNoStepsKeepsAStateThatIsNotFiniteToItself) {
  const Tensor x = random({2, 3, layer_->input_size()}, 19);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{3, 0}, {2});
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "unrolled");
    State state = random_state(*layer_, 2);
    for (const auto& [name, value] : state.values()) {
      Tensor numbers = value.value();
      numbers.select(0, 1).fill_(NAN);
    }
    for (const auto& [name, value] : everything(*layer_, x, {.lengths = lengths}, fused, state)) {
      EXPECT_TRUE(name.rfind("final", 0) == 0 || all_finite(value)) << name;
    }
  }
}

// Backward after `mask`, which `options` hold, was overwritten: refused, or the gradient of the mask as it was.
void expect_mask_is_kept(SequenceLayer& layer, const SequenceOptions& options, Tensor mask) {
  const Tensor x = random({3, 5, layer.input_size()}, 20);
  const auto gradients_of = [&layer](const Variable& loss) {
    layer.zero_grad();
    loss.backward();
    Everything gradients;
    for (const NamedParameter& parameter : layer.parameters()) {
      gradients.emplace_back(parameter.name, parameter.variable.grad().clone());
    }
    return gradients;
  };
  const auto before = gradients_of(weigh(layer.forward(x, random_state(layer, 3), options)));
  const Variable loss = weigh(layer.forward(x, random_state(layer, 3), options));
  mask.fill_(1);
  try {
    expect_close(gradients_of(loss), before, 0);
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("changed in place"), std::string::npos) << error.what();
  }
}

TEST_P(SequenceSuite, AMaskChangedBetweenForwardAndBackwardGivesNoWrongGradient) {
  const Tensor reset = some_resets(3, 5);
  expect_mask_is_kept(*layer_, {.reset = reset}, reset);
  const Tensor turned = some_resets(5, 3).transpose(0, 1);  // time-major in memory: no layer needs a copy
  expect_mask_is_kept(*layer_, {.reset = turned}, turned);
  const Tensor lengths = some_lengths(3, 5);
  expect_mask_is_kept(*layer_, {.lengths = lengths}, lengths);
}

// After a backward through nothing; without steps, some parameters may have had no part in it.
void expect_zero_gradients(Module& module, bool of_all) {
  for (const NamedParameter& parameter : module.parameters()) {
    const bool reached = parameter.variable.grad().defined();
    EXPECT_TRUE(reached || !of_all) << parameter.name;
    if (!reached) continue;
    const Tensor zero = zeros_like(parameter.variable.value());  // of either sign
    EXPECT_TRUE(all_close(parameter.variable.grad(), zero, 0, 0)) << parameter.name;
  }
  module.zero_grad();
}

TEST_P(SequenceSuite, NoStepsOrNoRows) {  // HD-06
  const State state = random_state(*layer_, 10);
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "unrolled");
    const auto run = [this, fused](const Tensor& x, const State& start) {
      return fused ? layer_->forward(x, start) : layer_->unroll(x, start);
    };
    const SequenceResult nothing = run(zeros({10, 0, layer_->input_size()}, DType::float64), state);
    EXPECT_EQ(nothing.output.shape(), (Shape{10, 0, layer_->output_size()}));
    for (const auto& [name, value] : nothing.state.values()) {
      EXPECT_TRUE(identical(value.value(), state[name].value())) << name;
    }
    sum(nothing.output).backward();
    expect_zero_gradients(*layer_, false);
    const SequenceResult empty = run(zeros({0, 5, layer_->input_size()}, DType::float64), layer_->initial_state(0));
    EXPECT_EQ(empty.output.shape(), (Shape{0, 5, layer_->output_size()}));
    sum(empty.output).backward();
    expect_zero_gradients(*layer_, true);
  }
}

TEST_P(SequenceSuite, FloatFollowsDouble) {
  const auto single = make_layer(GetParam(), DType::float32);
  const auto ours = single->parameters();
  const auto theirs = layer_->parameters();
  for (size_t i = 0; i < ours.size(); ++i) {
    Tensor value = ours[i].variable.value();
    value.copy_(theirs[i].variable.value());
  }
  const Tensor x = random({3, 20, layer_->input_size()}, 12);
  const Everything rounded = everything(*single, x.to(DType::float32), {}, true);
  const Everything exact = everything(*layer_, x, {}, true);
  ASSERT_EQ(rounded.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto& [name, value] = exact[i];
    const double worst = max(abs(rounded[i].second.to(DType::float64) - value)).item();
    // 20 steps, each a few roundings of 6e-8.
    EXPECT_LE(worst, 1e-5 * max(abs(value)).item()) << name;
  }
}

TEST_P(SequenceSuite, NanInIsNanOut) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const auto layer = make_layer(GetParam(), dtype);
    Tensor x = random({2, 6, layer_->input_size()}, 13, dtype);
    x.select(0, 1).select(0, 2).slice(0, {.stop = 1}).fill_(NAN);
    for (const bool fused : {true, false}) {
      const State state = layer->initial_state(2);
      const Tensor y = (fused ? layer->forward(x, state) : layer->unroll(x, state)).output.value();
      EXPECT_TRUE(all_finite(y.select(0, 0))) << "the other row";
      EXPECT_TRUE(all_finite(y.select(0, 1).slice(0, {.stop = 2}))) << "before";
      EXPECT_TRUE(all(isnan(y.select(0, 1).slice(0, {.start = 2})))) << "from there on";
    }
  }
}

TEST_P(SequenceSuite, StateSizeIsWhatARowHolds) {
  const State state = layer_->forward(random({1, 7, layer_->input_size()}, 16), layer_->initial_state(1)).state;
  int64_t numbers = 0;
  for (const auto& [name, value] : state.values()) numbers += value.value().numel();
  EXPECT_EQ(layer_->state_size(7), numbers);
}

TEST_P(SequenceSuite, ChecksWithoutMakingTensors) {
  const State state = layer_->initial_state(2);
  const Variable x_t = random({2, layer_->input_size()}, 21), x = random({2, 3, layer_->input_size()}, 22);
  const StorageStats before = storage_stats();
  check_step("check", *layer_, x_t, state, {});
  check_sequence("check", *layer_, x, state, {});
  const StorageStats after = storage_stats();
  EXPECT_EQ(after.fresh + after.reused, before.fresh + before.reused);
}

TEST_P(SequenceSuite, NamesWhatDoesNotFit) {
  const State state = layer_->initial_state(2);
  const int64_t width = layer_->input_size();
  const std::string rule = "D = " + std::to_string(width);
  const Tensor wide = zeros({2, 4, 9}, DType::float64), more_rows = zeros({3, 4, width}, DType::float64);
  expect_error<ShapeError>([&] { layer_->forward(wide, state); }, {rule.c_str(), "[2, 4, 9]"});
  expect_error<ShapeError>([&] { layer_->step(wide.select(1, 0), state); }, {rule.c_str(), "[2, 9]"});
  expect_error<ShapeError>([&] { layer_->forward(more_rows, state); }, {"state", "got"});
  expect_error<ValueError>([&] { layer_->forward(zeros({2, 4, width}), state); }, {"float64", "float32"});
  expect_error<IndexError>([&] { layer_->forward(zeros({2, 4, width}, DType::float64), State()); }, {"[State]"});
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequenceSuite, testing::ValuesIn(members()),
                         [](const testing::TestParamInfo<Member>& member) { return member.param.name; });

}  // namespace
}  // namespace carousel::test
