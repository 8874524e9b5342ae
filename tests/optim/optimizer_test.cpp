#include "../nn/expect_error.h"

#include <carousel/optim/adam.h>
#include <carousel/optim/sgd.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

NamedParameter parameter(std::string name, Tensor value, bool decay = true) {
  return {std::move(name), Variable::parameter(std::move(value)), decay};
}

void set_grad(NamedParameter& parameter, double value) {
  parameter.variable.set_grad(full(parameter.variable.shape(), value, parameter.variable.dtype()));
}

double value_of(const NamedParameter& parameter) { return parameter.variable.value().item(); }

// One double weight at `start` under the gradients, one a step; returns where it ends.
template <class Optimizer, class Config>
double follow(const Config& config, double start, const std::vector<double>& gradients, double lr) {
  NamedParameter weight = parameter("w", Tensor::scalar(start, DType::float64));
  Optimizer optimizer({weight}, config);
  for (const double gradient : gradients) {
    set_grad(weight, gradient);
    optimizer.step(lr);
  }
  return value_of(weight);
}

const std::vector<double> gradients = {0.3, -0.1, 0.4, 0.25};

TEST(Sgd, PlainIsLrTimesGradient) { EXPECT_NEAR(follow<Sgd>(SgdConfig{}, 1, gradients, 0.1), 1 - 0.1 * 0.85, 1e-15); }

TEST(Sgd, MomentumAndNesterovAreTheDefinitions) {
  double w = 1, v = 0, w_nesterov = 1, v_nesterov = 0;
  for (const double g : gradients) {
    const double decayed = g + 0.01 * w;
    v = 0.9 * v + decayed;
    w -= 0.1 * v;
    const double decayed_nesterov = g + 0.01 * w_nesterov;
    v_nesterov = 0.9 * v_nesterov + decayed_nesterov;
    w_nesterov -= 0.1 * (decayed_nesterov + 0.9 * v_nesterov);
  }
  EXPECT_NEAR(follow<Sgd>(SgdConfig{.momentum = 0.9, .weight_decay = 0.01}, 1, gradients, 0.1), w, 1e-15);
  EXPECT_NEAR(follow<Sgd>(SgdConfig{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01}, 1, gradients, 0.1),
              w_nesterov, 1e-15);
}

TEST(Adam, IsThePaper) {
  for (const bool decoupled : {false, true}) {
    double w = 1, m = 0, v = 0;
    int t = 0;
    for (const double gradient : gradients) {
      ++t;
      const double g = decoupled ? gradient : gradient + 0.1 * w;
      if (decoupled) {
        w -= 0.01 * 0.1 * w;
      }
      m = 0.9 * m + 0.1 * g;
      v = 0.99 * v + 0.01 * g * g;
      w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
    }
    const AdamConfig config{.beta2 = 0.99, .weight_decay = 0.1};
    const double got = decoupled ? follow<AdamW>(config, 1, gradients, 0.01) : follow<Adam>(config, 1, gradients, 0.01);
    EXPECT_NEAR(got, w, 1e-15) << decoupled;
  }
}

TEST(Adam, EpsilonStandsOutsideTheRootAfterBiasCorrection) {  // HD-17
  for (const auto& [gradient, move] : {std::pair{1e-8, 5.0000e-4}, std::pair{1e-4, 9.99900e-4}}) {
    NamedParameter weight = parameter("w", zeros({1}));
    Adam optimizer({weight}, {});
    set_grad(weight, gradient);
    optimizer.step(1e-3);
    EXPECT_NEAR(value_of(weight), -move, 1e-5 * move);
  }
}

TEST(AdamW, DecaysMatricesOnly) {  // HD-18
  NamedParameter matrix = parameter("weight", ones({1, 1}));
  NamedParameter gain = parameter("gain", ones({1}), false);
  NamedParameter bias = parameter("bias", full({1}, 0.5), false);
  AdamW optimizer({matrix, gain, bias}, {.weight_decay = 0.1});
  for (NamedParameter* each : {&matrix, &gain, &bias}) {
    set_grad(*each, 0);
  }
  optimizer.step(0.01);
  EXPECT_FLOAT_EQ(static_cast<float>(value_of(matrix)), 0.999F);
  EXPECT_EQ(value_of(gain), 1);
  EXPECT_EQ(value_of(bias), 0.5);
  const auto groups = optimizer.groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].names, (std::vector<std::string>{"weight"}));
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(groups[1].names, (std::vector<std::string>{"gain", "bias"}));
  EXPECT_EQ(groups[1].weight_decay, 0);
}

TEST(Optimizer, LeavesParametersWithoutGradientAlone) {
  NamedParameter moved = parameter("moved", ones({1}));
  const NamedParameter still = parameter("still", ones({1}));
  AdamW optimizer({moved, still}, {.weight_decay = 0.1});
  set_grad(moved, 1);
  optimizer.step(0.1);
  EXPECT_NE(value_of(moved), 1);
  EXPECT_EQ(value_of(still), 1);
  optimizer.zero_grad();
  EXPECT_FALSE(moved.variable.grad().defined());
  EXPECT_EQ(optimizer.steps(), 1);
}

TEST(Optimizer, AGradientThatIsNotFiniteIsRefusedAndNothingChanges) {  // HD-04
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    NamedParameter first = parameter("first", ones({2}));
    NamedParameter second = parameter("second", ones({2}));
    Adam optimizer({first, second}, {});
    set_grad(first, 1);
    set_grad(second, bad);
    expect_error<ValueError>([&] { optimizer.step(0.1); }, {"[Optimizer]", "finite", "'second'"});
    EXPECT_TRUE(identical(first.variable.value(), ones({2})));
    EXPECT_TRUE(identical(second.variable.value(), ones({2})));
    EXPECT_EQ(optimizer.steps(), 0);
    EXPECT_TRUE(identical(optimizer.state()[0].second, zeros({2})));
  }
}

TEST(Optimizer, ResumesBitForBit) {
  const auto train = [](Optimizer& optimizer, NamedParameter& weight, Rng& rng, int steps) {
    for (int i = 0; i < steps; ++i) {
      weight.variable.set_grad(rng.normal({3, 5}));
      optimizer.step(0.01);
    }
  };
  Rng rng(1);
  NamedParameter straight = parameter("w", ones({3, 5}));
  AdamW whole({straight}, {.weight_decay = 0.1});
  train(whole, straight, rng, 10);

  Rng again(1);
  NamedParameter before = parameter("w", ones({3, 5}));
  AdamW first({before}, {.weight_decay = 0.1});
  train(first, before, again, 4);
  NamedParameter after = parameter("w", before.variable.value().clone());
  AdamW second({after}, {.weight_decay = 0.1});
  auto state = second.state();
  ASSERT_EQ(state[0].first, "w/m");
  ASSERT_EQ(state[1].first, "w/v");
  for (size_t i = 0; i < state.size(); ++i) {
    state[i].second.copy_(first.state()[i].second);
  }
  second.set_steps(first.steps());
  train(second, after, again, 6);
  EXPECT_TRUE(identical(after.variable.value(), straight.variable.value()));
}

TEST(Optimizer, RefusesWhatMakesNoSense) {
  const std::vector<NamedParameter> one = {parameter("w", ones({1}))};
  expect_error<ValueError>([&] { Adam(one, {.beta1 = 1}); }, {"[Adam]", "betas", "1"});
  expect_error<ValueError>([&] { Adam(one, {.eps = 0}); }, {"[Adam]", "eps", "0"});
  expect_error<ValueError>([&] { AdamW(one, {.weight_decay = -0.1}); }, {"weight_decay", "-0.1"});
  expect_error<ValueError>([&] { Sgd(one, {.momentum = 1.5}); }, {"[Sgd]", "momentum", "1.5"});
  expect_error<ValueError>([&] { Sgd(one, {.nesterov = true}); }, {"[Sgd]", "nesterov"});
  expect_error<ValueError>([&] { Adam({one[0], one[0]}, {}); }, {"[Optimizer]", "once", "'w'"});
  expect_error<ValueError>([] { Adam({}, {}); }, {"[Optimizer]", "none"});
  Adam optimizer(one, {});
  expect_error<ValueError>([&] { optimizer.step(NAN); }, {"[Optimizer]", "rate", "nan"});
  expect_error<ValueError>([&] { optimizer.step(-1); }, {"rate", "-1"});
  expect_error<ValueError>([&] { optimizer.set_steps(-1); }, {"steps", "-1"});
}

}  // namespace
}  // namespace carousel
