#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/gru.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/stack.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>

#include "expect_error.h"

namespace carousel {
namespace {

Tensor numbers(std::initializer_list<double> values, const Shape& shape) {
  return Tensor::from(values, shape, DType::float64);
}

Tensor parameter(const Module& module, const std::string& name) {
  for (const NamedParameter& each : module.parameters()) {
    if (each.name == name) return each.variable.value();
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

void fill(const Module& module, const std::string& name, const Tensor& value) {
  Tensor target = parameter(module, name);
  target.copy_(value);
}

// ---- LSTM ----

TEST(Lstm, TheForgetBiasGoesInOnceIntoTheRightBlockOfEveryLayer) {  // HD-13
  Rng rng(1);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  for (int i = 0; i < 3; ++i) layers.push_back(std::make_unique<Lstm>(2, 2, LstmConfig{}, rng, DType::float64));
  const Stack stack(std::move(layers), 0);
  State state;
  for (const std::string layer : {"0", "1", "2"}) {
    const std::string path = "layers." + layer + ".";
    fill(stack, path + "weight_ih", zeros({8, 2}, DType::float64));
    fill(stack, path + "weight_hh", zeros({8, 2}, DType::float64));
    const Tensor both = parameter(stack, path + "bias_ih") + parameter(stack, path + "bias_hh");
    EXPECT_EQ(both.to_vector<double>(), (std::vector<double>{0, 0, 1, 1, 0, 0, 0, 0}));
    state.set(layer + ".h", zeros({1, 2}, DType::float64));
    state.set(layer + ".c", ones({1, 2}, DType::float64));
  }
  const auto entry = [](const State& of, const std::string& name) { return of[name].value().select(1, 0).item(); };
  const State one = stack.forward(zeros({1, 1, 2}, DType::float64), state).state;
  const State twenty = stack.forward(zeros({1, 20, 2}, DType::float64), state).state;
  for (const std::string layer : {"0", "1", "2"}) {
    EXPECT_NEAR(entry(one, layer + ".c"), 0.731059, 1e-6);
    EXPECT_NEAR(entry(one, layer + ".h"), 0.311856, 1e-6);
    EXPECT_NEAR(entry(twenty, layer + ".c"), 0.0019013, 1e-7);
  }
}

TEST(Lstm, TheFormOf1997KeepsItsCell) {
  Rng rng(2);
  const Lstm lstm(2, 3, {.forget_gate = false}, rng, DType::float64);
  EXPECT_EQ(parameter(lstm, "weight_ih").shape(), (Shape{9, 2}));
  fill(lstm, "weight_ih", zeros({9, 2}, DType::float64));
  fill(lstm, "weight_hh", zeros({9, 3}, DType::float64));
  const State start{{"h", zeros({1, 3}, DType::float64)}, {"c", full({1, 3}, 0.7, DType::float64)}};
  const State end = lstm.forward(zeros({1, 1000, 2}, DType::float64), start).state;
  EXPECT_TRUE(
      identical(end["c"].value(), start["c"].value()));  // the constant error carousel: g = tanh(0) adds nothing
}

TEST(Lstm, PeepholesLetTheGatesSeeTheCell) {
  Rng rng(3);
  const Lstm lstm(1, 1, {.forget_bias = 0, .peepholes = true}, rng, DType::float64);
  fill(lstm, "weight_ih", zeros({4, 1}, DType::float64));
  fill(lstm, "weight_hh", zeros({4, 1}, DType::float64));
  fill(lstm, "bias_ih", numbers({0, 0, 1, 0}, {4}));
  fill(lstm, "peephole", numbers({2, -1, 3}, {3, 1}));
  const State start{{"h", zeros({1, 1}, DType::float64)}, {"c", full({1, 1}, 0.5, DType::float64)}};
  const StepResult result = lstm.step(zeros({1, 1}, DType::float64), start);
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double c = logistic(-0.5) * 0.5 + logistic(1.0) * std::tanh(1.0);
  EXPECT_NEAR(result.state["c"].value().item(), c, 1e-15);
  EXPECT_NEAR(result.output.value().item(), logistic(3 * c) * std::tanh(c), 1e-15);
}

TEST(Lstm, EveryOptionPassesTheGradientCheck) {
  const LstmConfig configs[] = {{.forget_gate = false},
                                {.peepholes = true},
                                {.layer_norm = true},
                                {.variational_dropout = 0.4},
                                {.forget_gate = false, .peepholes = true, .layer_norm = true}};
  for (const LstmConfig& config : configs) {
    Rng rng(4);
    const Lstm lstm(3, 4, config, rng, DType::float64);
    const GradcheckFunction run = [&lstm](std::span<const Variable> in) {
      const State start{{"h", in[1]}, {"c", in[2]}};
      const SequenceResult result = lstm.forward(in[0], start, {.dropout_key = 9});
      return sum(square(result.output)) + sum(result.state["c"]);
    };
    const GradcheckResult result =
        gradcheck(run, {rng.normal({2, 5, 3}, 0, 1, DType::float64), rng.normal({2, 4}, 0, 1, DType::float64),
                        rng.normal({2, 4}, 0, 1, DType::float64)});
    EXPECT_TRUE(result) << result.message;
  }
}

TEST(Lstm, VariationalDropoutUsesOneMaskForAllSteps) {
  Rng rng(5);
  Lstm lstm(2, 50, {.variational_dropout = 0.5}, rng, DType::float64);
  const Variable x = rng.normal({1, 2}, 0, 1, DType::float64);
  const State start{{"h", ones({1, 50}, DType::float64)}, {"c", zeros({1, 50}, DType::float64)}};
  const auto output = [&](uint64_t key, int64_t time) {
    return lstm.step(x, start, {.dropout_key = key, .time = time}).output.value();
  };
  EXPECT_TRUE(identical(output(7, 0), output(7, 3)));
  EXPECT_FALSE(all_close(output(7, 0), output(8, 0)));
  lstm.eval();
  EXPECT_TRUE(identical(output(7, 0), output(8, 0)));
}

// ---- GRU ----

Gru trial_gru(bool reset_after, Rng& rng) {  // HD-14
  return Gru(1, 2, {.reset_after = reset_after}, rng, DType::float64);
}

double worst_difference(const Gru& gru, double first, double second) {
  fill(gru, "weight_ih", numbers({1, -1, 0.5, 0.25, 0.3, -0.2}, {6, 1}));
  fill(gru, "weight_hh", numbers({1, 0, 0, 1, 0, 0.5, 0.5, 0, 2, 1, -1, 2}, {6, 2}));
  fill(gru, "bias_ih", numbers({0, 0, 0, 0, 0.1, 0.2}, {6}));
  fill(gru, "bias_hh", numbers({0, 0, 0, 0, 0.4, -0.3}, {6}));
  const Tensor h = gru.step(ones({1, 1}, DType::float64), {{"h", numbers({0.5, -0.25}, {1, 2})}}).output.value();
  const std::vector<double> values = h.to_vector<double>();
  return std::max(std::abs(values[0] - first), std::abs(values[1] - second));
}

TEST(Gru, TheResetGateActsWhereItWasAskedTo) {
  Rng rng(6);
  EXPECT_LT(worst_difference(trial_gru(true, rng), 0.651415, -0.261962), 1e-6);
  EXPECT_LT(worst_difference(trial_gru(false, rng), 0.669340, -0.410509), 1e-6);
}

// ---- fused ----

struct Seen {
  std::vector<std::string> saved, gradient;           // names, in order
  std::vector<int64_t> first_steps;                   // of the blocks, as they came
  std::vector<std::pair<std::string, Tensor>> steps;  // what was saved of the last block: [steps, B, H]
};

Seen look_back(const SequenceLayer& layer, const Variable& x) {
  Seen seen;
  const auto names = [](const auto& tensors) {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : tensors) all.push_back(name);
    return all;
  };
  const BackwardVisitor visitor = [&seen, &names](const BackwardView& view) {
    seen.saved = names(view.saved);
    seen.gradient = names(view.gradient);
    seen.first_steps.push_back(view.first_step);
    seen.steps = view.saved;
    for (auto& [name, tensor] : seen.steps) tensor = tensor.clone();
  };
  sum(layer.forward(x, layer.initial_state(x.size(0)), {.visitor = visitor}).output).backward();
  return seen;
}

using Names = std::vector<std::string>;

TEST(GatedLayers, AVisitorSeesTheGatesAndTheStates) {
  Rng rng(8);
  const Variable x = Variable::parameter(rng.normal({2, 40, 3}, 0, 1, DType::float64));
  const Lstm lstm(3, 4, {}, rng, DType::float64), lstm_1997(3, 4, {.forget_gate = false}, rng, DType::float64);
  const Gru gru(3, 4, {}, rng, DType::float64);
  const Seen standard = look_back(lstm, x);
  EXPECT_EQ(standard.saved, (Names{"i", "f", "g", "o", "c", "h"}));
  EXPECT_EQ(standard.gradient, (Names{"h", "c"}));
  EXPECT_EQ(standard.first_steps, (std::vector<int64_t>{32, 0}));
  EXPECT_EQ(look_back(lstm_1997, x).saved, (Names{"i", "g", "o", "c", "h"}));
  const Seen gated = look_back(gru, x);
  EXPECT_EQ(gated.saved, (Names{"r", "z", "n", "h"}));
  EXPECT_EQ(gated.gradient, (Names{"h"}));

  // The step from 3 to 4, from what was seen: the names are on the right gates.
  const auto at = [](const Seen& seen, size_t entry, int64_t t) { return seen.steps[entry].second.select(0, t); };
  const Tensor c = at(standard, 1, 4) * at(standard, 4, 3) + at(standard, 0, 4) * at(standard, 2, 4);
  EXPECT_TRUE(all_close(at(standard, 4, 4), c, 0, 1e-15));
  EXPECT_TRUE(all_close(at(standard, 5, 4), at(standard, 3, 4) * tanh(c), 0, 1e-15));
  const Tensor z = at(gated, 1, 4), h = (1.0 - z) * at(gated, 2, 4) + z * at(gated, 3, 3);
  EXPECT_TRUE(all_close(at(gated, 3, 4), h, 0, 1e-15));
  const Tensor first_h = gru.step(x.value().select(1, 0), gru.initial_state(2)).output.value();
  EXPECT_TRUE(all_close(at(gated, 3, 0), first_h, 0, 1e-15));
}

TEST(GatedLayers, AreOneNodeASequenceUnlessAnOptionNeedsEveryStep) {
  Rng rng(9);
  const Variable x = rng.normal({2, 6, 3}, 0, 1, DType::float64);
  const auto operation = [&x](const SequenceLayer& layer, const SequenceOptions& options = {}) {
    return layer.forward(x, layer.initial_state(2), options).state["h"].op();
  };
  EXPECT_EQ(operation(Gru(3, 4, {}, rng, DType::float64)), Op::gru);
  EXPECT_EQ(operation(Gru(3, 4, {.reset_after = false}, rng, DType::float64)), Op::gru);
  EXPECT_EQ(operation(Lstm(3, 4, {}, rng, DType::float64)), Op::lstm);
  EXPECT_EQ(operation(Lstm(3, 4, {.forget_gate = false}, rng, DType::float64)), Op::lstm);
  EXPECT_NE(operation(Lstm(3, 4, {.peepholes = true}, rng, DType::float64)), Op::lstm);
  EXPECT_NE(operation(Lstm(3, 4, {.layer_norm = true}, rng, DType::float64)), Op::lstm);
  Lstm dropped(3, 4, {.variational_dropout = 0.5}, rng, DType::float64);
  EXPECT_NE(operation(dropped, {.dropout_key = 1}), Op::lstm);
  EXPECT_EQ(operation(dropped), Op::lstm);
  dropped.eval();
  EXPECT_EQ(operation(dropped, {.dropout_key = 1}), Op::lstm);
}

TEST(GatedLayers, BackwardRefusesAnOutputChangedInPlace) {
  Rng rng(10);
  const Lstm lstm(3, 4, {}, rng, DType::float64);
  const Gru gru(3, 4, {}, rng, DType::float64);
  for (const SequenceLayer* layer :
       {static_cast<const SequenceLayer*>(&lstm), static_cast<const SequenceLayer*>(&gru)}) {
    const SequenceResult out = layer->forward(zeros({2, 3, 3}, DType::float64), layer->initial_state(2));
    const Variable loss = sum(out.output);
    Tensor y = out.output.value();
    mul_(y, 2.0);
    EXPECT_THROW(loss.backward(), ValueError);
  }
}

TEST(GatedLayers, RefuseSizesThatAreNotPositive) {
  Rng rng(7);
  test::expect_error<ValueError>([&] { Lstm(0, 2, {}, rng); }, {"[Lstm]", "0 and 2"});
  test::expect_error<ValueError>([&] { Gru(2, -1, {}, rng); }, {"[Gru]", "2 and -1"});
}

}  // namespace
}  // namespace carousel
