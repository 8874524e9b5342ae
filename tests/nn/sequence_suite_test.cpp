#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/mamba.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/self_attention.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>
#include <cmath>
#include <functional>

/// What every kind of sequence layer in the registry must do. A new kind is tested by being registered.
namespace carousel {
namespace {

/// A layer that the suite is run over.
struct Member {
  std::string name;
  std::function<std::unique_ptr<SequenceLayer>(DType, Rng&)> make;
};

// Weights as large as those of other layers: N(0, 0.02) would leave little of some gradients to compare.
void enlarge(const SequenceLayer& layer, Rng& rng) {
  for (const NamedParameter& parameter : layer.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(rng.normal(value.shape(), 0, 0.6, value.dtype()));
  }
}

// A kind as it is registered, with `config` (JSON) instead of some defaults.
Member registered(const std::string& name, const std::string& kind, const std::string& config = "{}") {
  return {name, [kind, config](DType dtype, Rng& rng) {
            const LayerKind& found = layer_kind(kind);
            const LayerConfig layer_config = found.default_config();
            fields_from_json(kind, config, layer_config.field_list());
            const int64_t input_size = found.form.residual ? 4 : 3;
            auto layer = found.make({.input_size = input_size, .hidden_size = 4, .dtype = dtype}, layer_config, rng);
            if (found.form.residual) enlarge(*layer, rng);
            return layer;
          }};
}

Member attention() {
  return {"attention", [](DType dtype, Rng& rng) {
            auto layer = std::make_unique<CausalSelfAttention>(4, CausalSelfAttentionConfig{.heads = 2}, rng, dtype);
            enlarge(*layer, rng);
            return layer;
          }};
}

// The mixer alone, which is no kind: width 4, expand 2.
Member mamba(const std::string& name, const MambaConfig& config) {
  return {name, [config](DType dtype, Rng& rng) { return std::make_unique<Mamba>(4, config, 1, rng, dtype); }};
}

// Every kind in the registry, then configurations of them, then layers that are part of a kind.
std::vector<Member> members() {
  std::vector<Member> all;
  for (const std::string& kind : layer_kind_names()) all.push_back(registered(kind, kind));
  all.push_back(registered("rnn_relu", "rnn", R"({"nonlinearity": "relu"})"));
  all.push_back(registered("lstm_1997", "lstm", R"({"forget_gate": false})"));
  all.push_back(registered("lstm_peepholes", "lstm", R"({"peepholes": true})"));
  all.push_back(registered("lstm_layer_norm", "lstm", R"({"layer_norm": true})"));
  all.push_back(registered("gru_reset_before", "gru", R"({"reset_after": false})"));
  all.push_back(registered("decay_learned", "decay", R"({"learned": true})"));
  all.push_back(attention());
  all.push_back(mamba("mamba", {.state_size = 3}));
  all.push_back(mamba("mamba_no_gate", {.state_size = 3, .gate = false}));
  all.push_back(mamba("mamba_fixed", {.state_size = 3, .selective = false}));
  return all;
}

std::unique_ptr<SequenceLayer> make_layer(const Member& member, DType dtype = DType::float64) {
  Rng rng(1);
  return member.make(dtype, rng);
}

Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::float64) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, DType::float64).to(dtype);
}

// A reset in the middle of row 0, and one at the very beginning of the last row.
Tensor some_resets(int64_t batch, int64_t steps) {
  Tensor reset = zeros({batch, steps}, DType::boolean);
  reset.select(0, 0).slice(0, {.start = steps / 2, .stop = steps / 2 + 1}).fill_(1);
  reset.select(0, -1).slice(0, {.stop = 1}).fill_(1);
  return reset;
}

// Lengths steps, steps - 1, .., not below 0.
Tensor some_lengths(int64_t batch, int64_t steps) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < batch; ++row) lengths.push_back(std::max<int64_t>(0, steps - row));
  return Tensor::from(lengths, {batch});
}

// The shape of a state that has grown by a few steps, along the axes that grow.
Shape grown(Shape initial) {
  std::replace(initial.begin() + 1, initial.end(), int64_t{0}, int64_t{3});
  return initial;
}

// A state whose numbers are all different from zero, as leaves that gather gradients.
State random_state(const SequenceLayer& layer, int64_t batch) {
  const State zero = layer.initial_state(batch);
  State state = zero;
  uint64_t seed = 100;
  for (const auto& [name, value] : zero.values()) {
    state.set(name, Variable::parameter(random(grown(value.shape()), seed++, value.dtype()) * 0.5));
  }
  for (const auto& [name, value] : zero.counts()) state.set_count(name, ones(grown(value.shape()), DType::int64));
  return state;
}

// Weighs every number of output and final state differently, so that no gradient can hide behind another.
Variable weigh(const SequenceResult& result) {
  const auto weigh_one = [](const Variable& value, uint64_t seed) {
    return sum(value * Variable(random(value.shape(), seed, value.dtype())));
  };
  Variable total = weigh_one(result.output, 50);
  uint64_t seed = 60;
  for (const auto& [name, value] : result.state.values()) total = total + weigh_one(value, seed++);
  return total;
}

// Everything that one pass makes: values, and after backward every gradient.
std::vector<std::pair<std::string, Tensor>> everything(SequenceLayer& layer, const Tensor& input,
                                                       const SequenceOptions& options, bool fused, const State& state) {
  layer.zero_grad();
  const Variable x = Variable::parameter(input);
  const SequenceResult result = fused ? layer.forward(x, state, options) : layer.unroll(x, state, options);
  weigh(result).backward();
  std::vector<std::pair<std::string, Tensor>> all = {{"output", result.output.value()}, {"d input", x.grad()}};
  for (const auto& [name, value] : result.state.values()) {
    all.emplace_back("final " + name, value.value());
    all.emplace_back("d initial " + name, state[name].grad());
  }
  for (const NamedParameter& parameter : layer.parameters()) {
    all.emplace_back("d " + parameter.name, parameter.variable.grad());
  }
  return all;
}

std::vector<std::pair<std::string, Tensor>> everything(SequenceLayer& layer, const Tensor& input,
                                                       const SequenceOptions& options, bool fused) {
  return everything(layer, input, options, fused, random_state(layer, input.size(0)));
}

void expect_close(const std::vector<std::pair<std::string, Tensor>>& a,
                  const std::vector<std::pair<std::string, Tensor>>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].second.defined(), b[i].second.defined()) << a[i].first;
    if (a[i].second.defined()) {
      EXPECT_TRUE(all_close(a[i].second.to(DType::float64), b[i].second.to(DType::float64), tolerance, tolerance))
          << a[i].first;
    }
  }
}

class SequenceSuite : public testing::TestWithParam<Member> {
 protected:
  std::unique_ptr<SequenceLayer> layer_ = make_layer(GetParam());
};

TEST_P(SequenceSuite, GradientsPassTheCheck) {
  for (const int64_t steps : {1, 2, 5}) {
    for (const int64_t batch : {1, 3}) {
      for (const bool with_reset : {false, true}) {
        const SequenceOptions options{.reset = with_reset ? some_resets(batch, steps) : Tensor()};
        const State initial = random_state(*layer_, batch);
        std::vector<Tensor> inputs = {random({batch, steps, layer_->input_size()}, 7)};
        std::vector<std::string> names;
        for (const auto& [name, value] : initial.values()) {
          names.push_back(name);
          inputs.push_back(value.value());
        }
        const auto function = [&](std::span<const Variable> in) {
          State state = initial;
          for (size_t i = 0; i < names.size(); ++i) state.set(names[i], in[i + 1]);
          return weigh(layer_->forward(in[0], state, options));
        };
        const GradcheckResult result = gradcheck(function, inputs);
        EXPECT_TRUE(result) << "T " << steps << ", B " << batch << ", reset " << with_reset << ": " << result.message;
      }
    }
  }
}

// d loss / d every element of every parameter, which is changed in place, as a training step would.
void check_parameter_gradients(SequenceLayer& layer, const std::function<Variable()>& loss) {
  layer.zero_grad();
  loss().backward();
  constexpr double eps = 1e-6;
  for (const NamedParameter& parameter : layer.parameters()) {
    const Tensor gradient = parameter.variable.grad().reshape({-1});
    const Tensor flat = parameter.variable.value().reshape({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      Tensor element = flat.slice(0, {.start = i, .stop = i + 1});
      const double value = element.item();
      element.fill_(value + eps);
      const double above = loss().value().item();
      element.fill_(value - eps);
      const double below = loss().value().item();
      element.fill_(value);
      const double quotient = (above - below) / (2 * eps);
      // gradcheck's defaults: truncation eps^2 and rounding 1e-16 / eps are both far below.
      EXPECT_NEAR(gradient.select(0, i).item(), quotient, 1e-5 + 1e-3 * std::abs(quotient)) << parameter.name << i;
    }
  }
}

TEST_P(SequenceSuite, ParameterGradientsAreDifferenceQuotients) {
  for (const int64_t steps : {1, 2, 5}) {
    for (const int64_t batch : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "T " << steps << ", B " << batch);
      const Tensor x = random({batch, steps, layer_->input_size()}, 7);
      const SequenceOptions options{.reset = some_resets(batch, steps), .lengths = some_lengths(batch, steps)};
      const State state = random_state(*layer_, batch);
      check_parameter_gradients(*layer_, [&] { return weigh(layer_->forward(x, state)); });
      check_parameter_gradients(*layer_, [&] { return weigh(layer_->forward(x, state, options)); });
    }
  }
}

TEST_P(SequenceSuite, FusedEqualsUnrolledInValuesAndEveryGradient) {
  for (const int64_t steps : {1, 2, 5, 40}) {
    for (const int64_t batch : {1, 3}) {
      const Tensor x = random({batch, steps, layer_->input_size()}, 8);
      const Tensor turned = x.transpose(0, 1).clone().transpose(0, 1);  // time-major in memory
      for (const SequenceOptions& options :
           {SequenceOptions{}, SequenceOptions{.reset = some_resets(batch, steps)},
            SequenceOptions{.lengths = some_lengths(batch, steps)},
            SequenceOptions{.reset = some_resets(batch, steps), .lengths = some_lengths(batch, steps)}}) {
        SCOPED_TRACE(testing::Message() << "T " << steps << ", B " << batch << ", reset " << options.reset.defined()
                                        << ", lengths " << options.lengths.defined());
        const auto unrolled = everything(*layer_, x, options, false);
        expect_close(everything(*layer_, x, options, true), unrolled, 1e-12);
        expect_close(everything(*layer_, turned, options, true), unrolled, 1e-12);
      }
    }
  }
}

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

TEST_P(SequenceSuite, SplitAndCarryEqualsWholeAlsoInTheGradients) {
  const Tensor input = random({2, 10, layer_->input_size()}, 10);
  const auto whole = everything(*layer_, input, {}, true);
  layer_->zero_grad();
  const Variable x = Variable::parameter(input);
  const State state = random_state(*layer_, 2);
  const SequenceResult first = layer_->forward(slice(x, 1, {.stop = 4}), state);
  const SequenceResult second = layer_->forward(slice(x, 1, {.start = 4}), first.state);
  const std::vector<Variable> outputs = {first.output, second.output};
  weigh({concatenate(outputs, 1), second.state}).backward();
  EXPECT_TRUE(all_close(x.grad(), whole[1].second, 1e-12, 1e-12));
  size_t next = 2;
  for (const auto& [name, value] : second.state.values()) {
    EXPECT_TRUE(all_close(value.value(), whole[next++].second, 1e-12, 1e-12)) << name;
    EXPECT_TRUE(all_close(state[name].grad(), whole[next++].second, 1e-12, 1e-12)) << "d initial " << name;
  }
  for (const NamedParameter& parameter : layer_->parameters()) {
    EXPECT_TRUE(all_close(parameter.variable.grad(), whole[next++].second, 1e-12, 1e-12)) << parameter.name;
  }
}

TEST_P(SequenceSuite, AResetRowEqualsAFreshStart) {
  const Tensor x = random({2, 6, layer_->input_size()}, 11);
  Tensor reset = zeros({2, 6}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 2, .stop = 3}).fill_(1);
  const Tensor y = layer_->forward(x, random_state(*layer_, 2), {.reset = reset}).output.value();
  const Tensor fresh = layer_->forward(x.slice(1, {.start = 2}), layer_->initial_state(2)).output.value();
  EXPECT_TRUE(all_close(y.select(0, 1).slice(0, {.start = 2}), fresh.select(0, 1), 0, 1e-14));
}

void expect_finite(const std::vector<std::pair<std::string, Tensor>>& all) {
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
    std::vector<std::pair<std::string, Tensor>> gradients;
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

TEST_P(SequenceSuite, NoStepsOrNoRows) {  // HD-06
  const State state = random_state(*layer_, 10);
  const SequenceResult nothing = layer_->forward(zeros({10, 0, layer_->input_size()}, DType::float64), state);
  EXPECT_EQ(nothing.output.shape(), (Shape{10, 0, layer_->output_size()}));
  for (const auto& [name, value] : nothing.state.values()) {
    EXPECT_TRUE(identical(value.value(), state[name].value())) << name;
  }
  const SequenceResult empty =
      layer_->forward(zeros({0, 5, layer_->input_size()}, DType::float64), layer_->initial_state(0));
  EXPECT_EQ(empty.output.shape(), (Shape{0, 5, layer_->output_size()}));
  sum(empty.output).backward();
  for (const NamedParameter& parameter : layer_->parameters()) {
    ASSERT_TRUE(parameter.variable.grad().defined()) << parameter.name;
    const Tensor zero = zeros_like(parameter.variable.value());  // of either sign
    EXPECT_TRUE(all_close(parameter.variable.grad(), zero, 0, 0)) << parameter.name;
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
  // 20 steps, each a few roundings of 6e-8 of numbers up to about ten.
  expect_close(everything(*single, x.to(DType::float32), {}, true), everything(*layer_, x, {}, true), 2e-5);
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

TEST_P(SequenceSuite, TwoBackwardCallsOnARetainedGraphAgree) {
  const Variable x = Variable::parameter(random({2, 5, layer_->input_size()}, 14));
  const Variable loss = weigh(layer_->forward(x, random_state(*layer_, 2)));
  loss.backward({.retain_graph = true});
  const Tensor once = x.grad().clone();
  loss.backward();
  EXPECT_TRUE(identical(x.grad().contiguous(), (once + once).contiguous()));
}

TEST_P(SequenceSuite, AVisitorSeesWhatTheUnrolledStatesGather) {
  using Seen = std::vector<std::pair<std::string, Tensor>>;  // by name and step
  const auto look = [&](bool fused) {
    Seen seen;
    const auto visitor = [&](const BackwardView& view) {
      for (const auto& [name, gradient] : view.gradient) {
        for (int64_t t = gradient.size(0) - 1; t >= 0; --t) {
          seen.emplace_back(name + std::to_string(view.first_step + t), gradient.select(0, t).clone());
        }
      }
    };
    everything(*layer_, random({3, 50, layer_->input_size()}, 15),
               {.reset = some_resets(3, 50), .lengths = some_lengths(3, 50), .visitor = visitor}, fused);
    std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return seen;
  };
  const Seen fused = look(true);
  ASSERT_GE(fused.size(), 50U);
  expect_close(fused, look(false), 1e-12);
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
  test::expect_error<ShapeError>([&] { layer_->forward(wide, state); }, {rule.c_str(), "[2, 4, 9]"});
  test::expect_error<ShapeError>([&] { layer_->step(wide.select(1, 0), state); }, {rule.c_str(), "[2, 9]"});
  test::expect_error<ShapeError>([&] { layer_->forward(more_rows, state); }, {"state", "got"});
  test::expect_error<ValueError>([&] { layer_->forward(zeros({2, 4, width}), state); }, {"float64", "float32"});
  test::expect_error<IndexError>([&] { layer_->forward(zeros({2, 4, width}, DType::float64), State()); }, {"[State]"});
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequenceSuite, testing::ValuesIn(members()),
                         [](const testing::TestParamInfo<Member>& member) { return member.param.name; });

}  // namespace
}  // namespace carousel
