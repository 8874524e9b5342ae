#include <carousel/nn/mamba.h>

#include "expect_error.h"
#include "parameter_gradients.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/init.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace carousel {
namespace {

std::map<std::string, NamedParameter> by_name(const Mamba& layer) {
  std::map<std::string, NamedParameter> parameters;
  for (const NamedParameter& parameter : layer.parameters()) parameters[parameter.name] = parameter;
  return parameters;
}

double worst_difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

// The prompt x[:, :prompt] in one call, then x one step at a time.
SequenceResult in_parts(const Mamba& layer, const Tensor& x, int64_t prompt) {
  SequenceResult first = layer.forward(x.slice(1, {.stop = prompt}), layer.initial_state(x.size(0)));
  State state = first.state;
  Variables outputs{first.output};
  for (int64_t t = prompt; t < x.size(1); ++t) {
    const StepResult next = layer.step(x.select(1, t), state);
    outputs.push_back(unsqueeze(next.output, 1));
    state = next.state;
  }
  return {.output = concatenate(outputs, 1), .state = state};
}

TEST(Mamba, CountsWhatAStepMultiplies) {
  Rng rng(1);
  // Of 16 features and 32 channels: projections 1024 + 512, convolution 128, dt A 512; then fading, taking in and
  // reading 512 states each, and what makes r, B, C (33 x 32) and dt (32).
  EXPECT_EQ(Mamba(16, {}, 1, rng).multiply_adds(1), 1024 + 512 + 128 + 512 + 3 * 512 + 33 * 32 + 32);
  EXPECT_EQ(Mamba(16, {.selective = false}, 1, rng).multiply_adds(1), 1024 + 512 + 128 + 512 + 3 * 512);
}

TEST(Mamba, StepsAgreeWithTheFullPassWhateverThePrompt) {  // HD-16
  for (const DType dtype : {DType::float32, DType::float64}) {
    Rng rng(1);
    const Mamba layer(16, {}, 1, rng, dtype);
    const Tensor x = rng.normal({2, 64, 16}, 0, 1, dtype);
    const NoGrad no_grad;
    const double bound = dtype == DType::float32 ? 1e-5 : 1e-10;  // of the handed case
    const auto compare = [&layer, bound](const Tensor& input, int64_t prompt) {
      const SequenceResult whole = layer.forward(input, layer.initial_state(2)), parts = in_parts(layer, input, prompt);
      EXPECT_LE(worst_difference(whole.output.value(), parts.output.value()), bound);
      for (const char* name : {"conv", "h"}) {
        EXPECT_LE(worst_difference(whole.state[name].value(), parts.state[name].value()), bound) << name;
      }
    };
    for (const int64_t steps : {1, 2, 3, 4, 29, 31, 64}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << steps << " steps");
      compare(x.slice(1, {.stop = steps}), 0);
    }
    for (const int64_t prompt : {1, 2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", a prompt of " << prompt);
      compare(x, prompt);
    }
  }
}

TEST(Mamba, AShortPromptLeavesAWindowWithZerosOnTheLeft) {
  Rng rng(2);
  const Mamba layer(3, {.state_size = 2}, 1, rng, DType::float64);
  const Tensor x = rng.normal({2, 2, 3}, 0, 1, DType::float64);
  const Tensor window = layer.forward(x, layer.initial_state(2)).state["conv"].value();
  EXPECT_EQ(window.shape(), (Shape{2, 6, 3}));
  EXPECT_TRUE(identical(window.select(2, 0).contiguous(), zeros({2, 6}, DType::float64)));
  EXPECT_FALSE(any(equal(window.slice(2, {.start = 1}), 0)));
}

TEST(Mamba, ParametersHaveThePublishedNamesSizesAndMarks) {
  Rng rng(3);
  const Mamba layer(20, {}, 1, rng);
  std::vector<std::string> lines;
  for (const NamedParameter& p : layer.parameters()) {
    lines.push_back(p.name + " " + to_string(p.variable.shape()) + (p.decay ? "" : " no decay"));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"A_log [40, 16] no decay", "D [40] no decay", "in_proj.weight [80, 20]",
                                             "conv1d.weight [40, 1, 4]", "conv1d.bias [40] no decay",
                                             "x_proj.weight [34, 40]", "dt_proj.weight [40, 2]",
                                             "dt_proj.bias [40] no decay", "out_proj.weight [20, 40]"}));
}

// The mixer of mamba-130m: 3,771,648 numbers a layer, 768 of which are its norm's.
TEST(Mamba, HasAsManyParametersAsThePublishedMixer) {
  const init::ShapesOnly shapes_only;
  Rng rng(4);
  EXPECT_EQ(Mamba(768, {}, 24, rng).parameter_count(), 3771648 - 768);
}

void expect_uniform(const Tensor& x, double bound) {
  const double largest = max(abs(x)).item();
  EXPECT_LE(largest, bound * (1 + 1e-6));  // rounded to float
  EXPECT_GE(largest, bound * 0.9);         // of some hundred numbers: 0.9^100 = 3e-5
}

TEST(Mamba, InitialValuesAreThePublishedOnes) {
  Rng rng(5);
  const Mamba layer(64, {}, 4, rng);
  const auto p = by_name(layer);
  const auto value = [&p](const char* name) { return p.at(name).variable.value(); };
  for (int64_t n = 0; n < 16; ++n) {
    EXPECT_NEAR(value("A_log").select(0, 127).select(0, n).item(), std::log(n + 1.0), 1e-6);
  }
  EXPECT_TRUE(identical(value("D"), ones({128})));
  expect_uniform(value("in_proj.weight"), 1 / 8.0);
  expect_uniform(value("conv1d.weight"), 0.5);
  expect_uniform(value("conv1d.bias"), 0.5);
  expect_uniform(value("x_proj.weight"), 1 / std::sqrt(128.0));
  expect_uniform(value("dt_proj.weight"), 0.5);  // R = 4
  expect_uniform(value("out_proj.weight"), 1 / std::sqrt(128.0) / 2);
  const Tensor dt = softplus(value("dt_proj.bias"));
  EXPECT_GE(min(dt).item(), 0.001 * (1 - 1e-5));
  EXPECT_LE(max(dt).item(), 0.1 * (1 + 1e-5));
  // Log-uniform: half of the 128 lie below the middle, 0.01, give or take four deviations of 5.7.
  EXPECT_NEAR(sum(less(dt, 0.01).to(DType::int64)).item(), 64, 23);
}

TEST(Mamba, WithoutSelectionItIsTheSameAtAllSteps) {
  Rng rng(6);
  const Mamba layer(4, {.state_size = 3, .selective = false}, 1, rng, DType::float64);
  const auto p = by_name(layer);
  EXPECT_FALSE(p.contains("x_proj.weight"));
  EXPECT_FALSE(p.at("B").decay);
  EXPECT_TRUE(p.at("C").decay);
  EXPECT_FALSE(p.at("dt_bias").decay);
  EXPECT_TRUE(identical(p.at("B").variable.value(), ones({8, 3}, DType::float64)));
  // Where nothing comes in, two equal steps keep the same part of the state.
  const State start{{"conv", zeros({1, 8, 3}, DType::float64)}, {"h", ones({1, 8, 3}, DType::float64)}};
  Tensor bias = p.at("conv1d.bias").variable.value();
  bias.fill_(0);
  const Tensor nothing = zeros({1, 1, 4}, DType::float64);
  const SequenceResult once = layer.forward(nothing, start), twice = layer.forward(nothing, once.state);
  const Tensor kept = once.state["h"].value();
  EXPECT_TRUE(all_close(twice.state["h"].value(), square(kept), 1e-14, 0));
  EXPECT_TRUE(all(less(kept, 1.0)));
}

TEST(Mamba, DecaysThatUnderflowAreFiniteInValuesAndGradients) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Rng rng(7);
    Mamba layer(4, {.state_size = 2}, 1, rng, dtype);
    // dt is about 1: dt A is -1000 in one state and 0 in the other.
    const auto p = by_name(layer);
    Tensor a_log = p.at("A_log").variable.value(), bias = p.at("dt_proj.bias").variable.value();
    a_log.select(1, 0).fill_(std::log(1000.0));
    a_log.select(1, 1).fill_(-200);
    bias.fill_(0.54);
    const Variable x = Variable::parameter(rng.normal({2, 40, 4}, 0, 1, dtype));
    const State start{{"conv", Variable::parameter(rng.normal({2, 8, 3}, 0, 1, dtype))},
                      {"h", Variable::parameter(rng.normal({2, 8, 2}, 0, 1, dtype))}};
    const auto gradients = [&](bool fused) {
      for (Variable leaf : {x, start["conv"], start["h"]}) leaf.zero_grad();
      layer.zero_grad();
      const SequenceResult result = fused ? layer.forward(x, start) : layer.unroll(x, start);
      (sum(square(result.output)) + sum(result.state["h"])).backward();
      std::vector<Tensor> all{result.output.value(), x.grad(), start["conv"].grad(), start["h"].grad()};
      for (const auto& [name, parameter] : by_name(layer)) all.push_back(parameter.variable.grad());
      return all;
    };
    const std::vector<Tensor> fused = gradients(true), unrolled = gradients(false);
    // Sums over 80 steps, in float and double.
    const double tolerance = dtype == DType::float32 ? 1e-4 : 1e-12;
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_TRUE(all_finite(fused[i])) << i;
      EXPECT_TRUE(all_close(fused[i], unrolled[i], tolerance, tolerance)) << i;
    }
    const Tensor to_start = start["h"].grad();
    EXPECT_TRUE(all(equal(to_start.select(2, 0), 0)));
    EXPECT_FALSE(any(equal(to_start.select(2, 1), 0)));
  }
}

TEST(Mamba, GradientReachesTheInitialWindowAndState) {
  Rng rng(8);
  const Mamba layer(4, {.state_size = 2}, 1, rng, DType::float64);
  const Tensor x = rng.normal({1, 6, 4}, 0, 1, DType::float64);
  const auto loss_of = [&layer, &x](const State& start) { return sum(square(layer.forward(x, start).output)); };
  const State start{{"conv", Variable::parameter(rng.normal({1, 8, 3}, 0, 1, DType::float64))},
                    {"h", Variable::parameter(rng.normal({1, 8, 2}, 0, 1, DType::float64))}};
  loss_of(start).backward();
  for (const char* name : {"conv", "h"}) {
    const auto element = [](const Tensor& all) {
      return all.select(0, 0).select(0, 5).slice(0, {.start = 1, .stop = 2});
    };
    const double gradient = element(start[name].grad()).item();
    const double quotient = test::difference_quotient(element(start[name].value()), [&] { return loss_of(start); });
    EXPECT_NE(gradient, 0);
    EXPECT_NEAR(gradient, quotient, test::quotient_tolerance(quotient)) << name;
  }
}

TEST(Mamba, AGradientBehindTheEndOfARowDoesNotMatter) {
  Rng rng(10);
  const Mamba layer(4, {.state_size = 2}, 1, rng, DType::float64);
  const Variable x = Variable::parameter(rng.normal({2, 5, 4}, 0, 1, DType::float64));
  Tensor weights = ones({2, 5, 4}, DType::float64);
  weights.select(0, 1).slice(0, {.start = 3}).fill_(NAN);
  const SequenceOptions options{.lengths = Tensor::from(std::vector<int64_t>{5, 3})};
  sum(layer.forward(x, layer.initial_state(2), options).output * Variable(weights)).backward();
  EXPECT_TRUE(all_finite(x.grad()));
  for (const auto& [name, parameter] : by_name(layer)) EXPECT_TRUE(all_finite(parameter.variable.grad())) << name;
}

TEST(Mamba, ErrorsNameTheLayerTheRuleAndTheValues) {
  Rng rng(9);
  test::expect_error<ValueError>([&] { Mamba(0, {}, 1, rng); }, {"[Mamba]", "positive", "0 and 1"});
  test::expect_error<ValueError>([&] { Mamba(4, {}, 0, rng); }, {"[Mamba]", "positive", "4 and 0"});
  test::expect_error<ValueError>([&] { Mamba(4, {.conv_width = 1}, 1, rng); }, {"[Mamba]", "conv_width"});
  const Mamba layer(4, {}, 1, rng);
  test::expect_error<ShapeError>(
      [&] {
        layer.forward(zeros({2, 5, 3}), layer.initial_state(2));
      },
      {"[Mamba]", "D = 4", "[2, 5, 3]"});
  test::expect_error<ShapeError>(
      [&] {
        layer.step(zeros({2, 4}), layer.initial_state(3));
      },
      {"[Mamba]", "state conv", "[3, 8, 3]"});
}

}  // namespace
}  // namespace carousel
