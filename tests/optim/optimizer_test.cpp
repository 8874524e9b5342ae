#include "../nn/expect_error.h"

#include <carousel/optim/adagrad.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>
#include <carousel/optim/rmsprop.h>
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

// How often each parameter was updated.
std::vector<int64_t> updates(const Optimizer& optimizer) {
  std::vector<int64_t> counts;
  for (const auto& [name, tensor] : optimizer.state()) {
    if (tensor.dtype() == DType::int64) counts.push_back(tensor.item<int64_t>());
  }
  return counts;
}

// One double weight at `start` under the gradients, one a step; returns where it ends.
template <class Kind, class Config>
double follow(const Config& config, double start, const std::vector<double>& gradients, double lr) {
  NamedParameter weight = parameter("w", Tensor::scalar(start, DType::float64));
  Kind optimizer({weight}, config);
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
      if (decoupled) w -= 0.01 * 0.1 * w;
      m = 0.9 * m + 0.1 * g;
      v = 0.99 * v + 0.01 * g * g;
      w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
    }
    const AdamConfig config{.beta2 = 0.99, .weight_decay = 0.1};
    const double got = decoupled ? follow<AdamW>(config, 1, gradients, 0.01) : follow<Adam>(config, 1, gradients, 0.01);
    EXPECT_NEAR(got, w, 1e-15) << decoupled;
  }
}

TEST(Adam, AParameterWhoseFirstGradientComesLateMovesByTheRate) {
  NamedParameter early = parameter("early", Tensor::scalar(0, DType::float64));
  NamedParameter late = parameter("late", Tensor::scalar(0, DType::float64));
  Adam optimizer({early, late}, {});
  for (int i = 0; i < 50; ++i) {
    set_grad(early, 1);
    optimizer.step(0.01);
  }
  set_grad(late, 3);
  optimizer.step(0.01);
  // m / (1 - b1) = g and sqrt(v / (1 - b2)) = |g|: the first move is the rate, but for epsilon.
  EXPECT_NEAR(value_of(late), -0.01 * 3 / (3 + 1e-8), 1e-15);
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

TEST(Rmsprop, EpsilonStandsOutsideTheRootAndTheFirstMoveIsLarge) {
  // The mean square begins at 0: sqrt(0.05) |g|. Inside the root, epsilon would give 0.1 / sqrt(0.05 0.01 + 0.01).
  const double moved = follow<Rmsprop>(RmspropConfig{.alpha = 0.95, .eps = 0.01}, 0, {0.1}, 1);
  EXPECT_NEAR(moved, -0.1 / (std::sqrt(0.05) * 0.1 + 0.01), 1e-14);
}

TEST(Rmsprop, MomentumIsThatOfTheScaledGradient) {
  double w = 1, v = 0, u = 0;
  for (const double gradient : gradients) {
    const double g = gradient + 0.01 * w;
    v = 0.95 * v + 0.05 * g * g;
    u = 0.9 * u + g / (std::sqrt(v) + 1e-8);
    w -= 0.02 * u;
  }
  const RmspropConfig config{.alpha = 0.95, .momentum = 0.9, .weight_decay = 0.01};
  EXPECT_NEAR(follow<Rmsprop>(config, 1, gradients, 0.02), w, 1e-14);  // some twenty roundings of numbers near 1
}

TEST(Adagrad, TheFirstMoveIsTheRateAndEpsilonStandsOutsideTheRoot) {
  EXPECT_NEAR(follow<Adagrad>(AdagradConfig{}, 0, {3}, 0.1), -0.1, 1e-11);
  EXPECT_NEAR(follow<Adagrad>(AdagradConfig{.eps = 1e-8}, 0, {1e-4}, 1), -1e-4 / (1e-4 + 1e-8), 1e-15);
}

TEST(Adagrad, MovesShrinkWithAllThatWasSeen) {
  EXPECT_NEAR(follow<Adagrad>(AdagradConfig{}, 0, {3, 4}, 0.1), -0.1 - 0.1 * 4 / 5, 1e-11);
}

std::vector<std::string> names_of(const ParameterGroup& group) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : group.parameters) names.push_back(parameter.name);
  return names;
}

TEST(AdamW, DecaysMatricesOnly) {  // HD-18
  NamedParameter matrix = parameter("weight", ones({1, 1}));
  NamedParameter gain = parameter("gain", ones({1}), false);
  NamedParameter bias = parameter("bias", full({1}, 0.5), false);
  AdamW optimizer({matrix, gain, bias}, {.weight_decay = 0.1});
  for (NamedParameter* each : {&matrix, &gain, &bias}) set_grad(*each, 0);
  optimizer.step(0.01);
  EXPECT_FLOAT_EQ(static_cast<float>(value_of(matrix)), 0.999F);
  EXPECT_EQ(value_of(gain), 1);
  EXPECT_EQ(value_of(bias), 0.5);
  const auto& groups = optimizer.groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(names_of(groups[0]), (std::vector<std::string>{"weight"}));
  EXPECT_EQ(groups[0].weight_decay, 0.1);
  EXPECT_EQ(names_of(groups[1]), (std::vector<std::string>{"gain", "bias"}));
  EXPECT_EQ(groups[1].weight_decay, 0);
}

TEST(AdamW, GroupsOfOnesOwnHaveTheirDecayAndRate) {  // HD-18
  NamedParameter slow = parameter("slow", ones({1})), still = parameter("still", ones({1}));
  NamedParameter gain = parameter("gain", ones({1}), false);
  AdamW optimizer(
      {ParameterGroup{.parameters = {slow}, .lr_scale = 0.1}, ParameterGroup{.parameters = {still}, .lr_scale = 0},
       ParameterGroup{.parameters = {gain}, .weight_decay = 0.5}},
      {});
  for (NamedParameter* each : {&slow, &still, &gain}) set_grad(*each, 0);
  set_grad(slow, 4);
  set_grad(still, 4);
  optimizer.step(0.01);
  EXPECT_NEAR(value_of(slow), 1 - 0.001, 1e-7);
  EXPECT_EQ(value_of(still), 1);
  EXPECT_NEAR(value_of(gain), 1 - 0.01 * 0.5, 1e-7);
  ASSERT_EQ(optimizer.groups().size(), 3U);
  EXPECT_EQ(names_of(optimizer.groups()[1]), (std::vector<std::string>{"still"}));
  EXPECT_EQ(optimizer.state()[0].first, "slow/m");
}

TEST(Sgd, GroupsOfOnesOwnHaveTheirDecayAndRate) {
  NamedParameter weight = parameter("w", full({1}, 2));
  Sgd optimizer({ParameterGroup{.parameters = {weight}, .weight_decay = 0.5, .lr_scale = 0.1}}, {});
  set_grad(weight, 3);
  optimizer.step(1);
  EXPECT_NEAR(value_of(weight), 2 - 0.1 * (3 + 0.5 * 2), 1e-6);
}

template <class Kind, class Config>
void expect_groups_of_ones_own(const Config& config, double first_direction) {
  NamedParameter weight = parameter("w", full({1}, 2)), still = parameter("still", full({1}, 2));
  Kind optimizer({ParameterGroup{.parameters = {weight}, .weight_decay = 0.5, .lr_scale = 0.1},
                  ParameterGroup{.parameters = {still}, .lr_scale = 0}},
                 config);
  for (NamedParameter* each : {&weight, &still}) set_grad(*each, 3);
  optimizer.step(1);
  EXPECT_NEAR(value_of(weight), 2 - 0.1 * first_direction, 1e-6);  // float
  EXPECT_EQ(value_of(still), 2);
}

TEST(Rmsprop, GroupsOfOnesOwnHaveTheirDecayAndRate) {
  expect_groups_of_ones_own<Rmsprop>(RmspropConfig{.alpha = 0.75, .eps = 1}, (3 + 0.5 * 2) / (0.5 * 4 + 1));
}

TEST(Adagrad, GroupsOfOnesOwnHaveTheirDecayAndRate) {
  expect_groups_of_ones_own<Adagrad>(AdagradConfig{.eps = 1}, (3 + 0.5 * 2) / (4 + 1));
}

TEST(Optimizer, AParameterIsInOneGroupOnce) {
  const NamedParameter w = parameter("w", ones({1}));
  const NamedParameter tied{"tied", w.variable};
  for (const NamedParameter& again : {w, tied}) {
    expect_error<ValueError>(
        [&] {
          Adam({ParameterGroup{{w}}, ParameterGroup{{again}}}, {});
        },
        {"[Optimizer]", "one group", "'w'", again.name.c_str()});
  }
  expect_error<ValueError>([&] { Adam({ParameterGroup{.parameters = {w}, .lr_scale = -1}}, {}); }, {"lr_scale", "-1"});
  expect_error<ValueError>([&] { Adam({ParameterGroup{{w}}}, {.weight_decay = 0.25}); },
                           {"weight_decay", "groups", "0.25"});
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
  EXPECT_EQ(updates(optimizer), (std::vector<int64_t>{1, 0}));
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
    EXPECT_EQ(updates(optimizer), (std::vector<int64_t>{0, 0}));
    EXPECT_TRUE(identical(optimizer.state()[0].second, zeros({2})));
  }
}

// Several parameters with gradients of a norm far above 1.
std::vector<NamedParameter> with_large_gradients() {
  Rng rng(5);
  std::vector<NamedParameter> parameters = {parameter("bias", rng.normal({301}), false),
                                            parameter("weight", rng.normal({70, 301})),
                                            parameter("double", rng.normal({40}, 0, 1, DType::float64))};
  for (NamedParameter& each : parameters) {
    each.variable.set_grad(rng.normal(each.variable.shape(), 0, 3, each.variable.dtype()));
  }
  return parameters;
}

// Three steps, clipped before the step or in it, end at the same bits.
template <class Kind, class Config>
void expect_clipping_in_the_step_is_the_same(const Config& config) {
  // The norm depends on the order of its terms in its last bit: all in one group, so that it is the same here and
  // there.
  const std::vector<NamedParameter> before = with_large_gradients(), inside = with_large_gradients();
  Kind first({ParameterGroup{.parameters = before, .weight_decay = 0.1}}, config);
  Kind second({ParameterGroup{.parameters = inside, .weight_decay = 0.1}}, config);
  for (int step = 0; step < 3; ++step) {
    for (size_t i = 0; i < before.size(); ++i) {
      Variable variable = before[i].variable;
      variable.set_grad(inside[i].variable.grad().clone());
    }
    const double norm = clip_grad_norm(before, 1.0);
    first.step(0.01);
    EXPECT_EQ(second.step(0.01, {.clip_norm = 1.0}), norm);
  }
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(identical(before[i].variable.value(), inside[i].variable.value())) << before[i].name;
    EXPECT_TRUE(identical(inside[i].variable.grad(), with_large_gradients()[i].variable.grad())) << "stays as it was";
  }
}

TEST(Optimizer, ClippingInTheStepIsClippingBeforeItBitForBit) {
  expect_clipping_in_the_step_is_the_same<Adam>(AdamConfig{});
  expect_clipping_in_the_step_is_the_same<AdamW>(AdamConfig{});
  expect_clipping_in_the_step_is_the_same<Sgd>(SgdConfig{.momentum = 0.9});
  expect_clipping_in_the_step_is_the_same<Rmsprop>(RmspropConfig{.momentum = 0.9});
  expect_clipping_in_the_step_is_the_same<Adagrad>(AdagradConfig{});
}

TEST(Optimizer, ReturnsTheNormAndClipsOnlyAboveTheLimit) {
  for (const double limit : {double{INFINITY}, 5.5}) {
    NamedParameter weight = parameter("w", zeros({2}, DType::float64));
    Sgd optimizer({weight}, {});
    weight.variable.set_grad(Tensor::from({3, 4}, {2}, DType::float64));
    EXPECT_EQ(optimizer.step(1, {.clip_norm = limit}), 5);
    EXPECT_EQ(weight.variable.value().to_vector<double>(), (std::vector<double>{-3, -4}));
  }
}

TEST(Optimizer, AFiniteGradientWhoseNormOverflowsIsUsedAsItIs) {
  NamedParameter first = parameter("first", zeros({1}, DType::float64));
  NamedParameter second = parameter("second", zeros({1}, DType::float64));
  Adam optimizer({first, second}, {});
  for (NamedParameter* each : {&first, &second}) set_grad(*each, 1.7e308);
  EXPECT_EQ(optimizer.step(0.01, {.clip_norm = 1}), double{INFINITY});
  EXPECT_EQ(updates(optimizer), (std::vector<int64_t>{1, 1}));
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
  ASSERT_EQ(state[2].first, "w/updates");
  for (size_t i = 0; i < state.size(); ++i) state[i].second.copy_(first.state()[i].second);
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
  expect_error<ValueError>([&] { Rmsprop(one, {.alpha = 1}); }, {"[Rmsprop]", "alpha", "1"});
  expect_error<ValueError>([&] { Rmsprop(one, {.eps = NAN}); }, {"[Rmsprop]", "eps", "nan"});
  expect_error<ValueError>([&] { Rmsprop(one, {.momentum = -1}); }, {"[Rmsprop]", "momentum", "-1"});
  expect_error<ValueError>([&] { Rmsprop({ParameterGroup{one}}, {.weight_decay = 0.25}); }, {"groups", "0.25"});
  expect_error<ValueError>([&] { Adagrad(one, {.eps = 0}); }, {"[Adagrad]", "eps", "0"});
  expect_error<ValueError>([&] { Adagrad({ParameterGroup{one}}, {.weight_decay = 0.25}); }, {"groups", "0.25"});
  expect_error<ValueError>([&] { Adam({one[0], one[0]}, {}); }, {"[Optimizer]", "once", "'w'"});
  expect_error<ValueError>([] { Adam(std::vector<NamedParameter>(), {}); }, {"[Optimizer]", "none"});
  Adam optimizer(one, {});
  expect_error<ValueError>([&] { optimizer.step(NAN); }, {"[Optimizer]", "rate", "nan"});
  expect_error<ValueError>([&] { optimizer.step(-1); }, {"rate", "-1"});
  expect_error<ValueError>([&] { optimizer.step(1, {.clip_norm = 0}); }, {"[Optimizer]", "clip_norm", "0"});
  expect_error<ValueError>([&] { optimizer.step(1, {.clip_norm = NAN}); }, {"clip_norm", "nan"});
}

}  // namespace
}  // namespace carousel
