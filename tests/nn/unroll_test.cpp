#include "expect_error.h"
#include "leaky_layer.h"

#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>

namespace carousel {
namespace {

using test::expect_error;
using test::LeakyLayer;

class Unroll : public testing::Test {
 protected:
  State start(int64_t batch, double value) const {
    State state = layer_.initial_state(batch);
    state.set("h", full({batch, 2}, value, DType::float64));
    return state;
  }
  Tensor input(int64_t batch, int64_t steps) { return rng_.normal({batch, steps, 3}, 0, 1, DType::float64); }

  Rng rng_{1};
  LeakyLayer layer_{3, 2, 0.5, rng_};
};

TEST_F(Unroll, IsOneStepAfterAnother) {
  const Tensor x = input(2, 4);
  const SequenceResult whole = layer_.unroll(x, start(2, 0.25));
  State state = start(2, 0.25);
  for (int64_t t = 0; t < 4; ++t) {
    StepResult result = layer_.step(x.select(1, t), state, {});
    EXPECT_TRUE(identical(result.output.value(), whole.output.value().select(1, t).contiguous())) << t;
    state = result.state;
  }
  EXPECT_TRUE(identical(state["h"].value(), whole.state["h"].value()));
  EXPECT_EQ(whole.state.count("steps").to_vector<int64_t>(), (std::vector<int64_t>{4, 4}));
}

TEST_F(Unroll, NoStepsGiveNoOutputAndTheStateAsItCame) {  // HD-06
  const SequenceResult result = layer_.unroll(input(10, 0), start(10, 0.25));
  EXPECT_EQ(result.output.shape(), (Shape{10, 0, 2}));
  EXPECT_TRUE(identical(result.state["h"].value(), full({10, 2}, 0.25, DType::float64)));
}

TEST_F(Unroll, NoRowsGiveZeroGradients) {  // HD-06
  const SequenceResult result = layer_.unroll(input(0, 5), start(0, 0));
  EXPECT_EQ(result.output.shape(), (Shape{0, 5, 2}));
  sum(result.output).backward();
  for (const NamedParameter& parameter : layer_.parameters()) {
    ASSERT_TRUE(parameter.variable.grad().defined()) << parameter.name;
    EXPECT_TRUE(identical(parameter.variable.grad(), zeros_like(parameter.variable.value()))) << parameter.name;
  }
}

TEST_F(Unroll, AResetRowIsAFreshStart) {
  const Tensor x = input(2, 5);
  Tensor reset = zeros({2, 5}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 2, .stop = 3}).fill_(1);  // row 1 before step 2
  const SequenceResult result = layer_.unroll(x, start(2, 0.25), {.reset = reset});
  const SequenceResult fresh = layer_.unroll(x.slice(1, {.start = 2}), layer_.initial_state(2));
  EXPECT_TRUE(identical(result.output.value().select(0, 1).slice(0, {.start = 2}).contiguous(),
                        fresh.output.value().select(0, 1).contiguous()));
  EXPECT_TRUE(identical(result.output.value().select(0, 0).contiguous(),
                        layer_.unroll(x, start(2, 0.25)).output.value().select(0, 0).contiguous()));
  EXPECT_EQ(result.state.count("steps").to_vector<int64_t>(), (std::vector<int64_t>{5, 3}));
}

TEST_F(Unroll, AResetCutsTheGradient) {
  const Variable x = Variable::parameter(input(1, 4));
  Tensor reset = zeros({1, 4}, DType::boolean);
  reset.slice(1, {.start = 2, .stop = 3}).fill_(1);
  const SequenceResult result = layer_.unroll(x, start(1, 0), {.reset = reset});
  sum(result.state["h"]).backward();
  const Tensor gradient = abs(x.grad());
  EXPECT_EQ(sum(gradient.slice(1, {.stop = 2})).item(), 0);
  EXPECT_GT(sum(gradient.slice(1, {.start = 2})).item(), 0);
}

TEST_F(Unroll, EndedRowsPutOutZerosAndKeepTheirState) {
  const Tensor x = input(3, 4);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{4, 2, 0}, {3});
  const SequenceResult result = layer_.unroll(x, start(3, 0.25), {.lengths = lengths});
  const SequenceResult shorter = layer_.unroll(x.slice(1, {.stop = 2}), start(3, 0.25));
  EXPECT_TRUE(identical(result.state["h"].value().select(0, 1).contiguous(),
                        shorter.state["h"].value().select(0, 1).contiguous()));
  EXPECT_TRUE(identical(result.state["h"].value().select(0, 2).contiguous(), full({2}, 0.25, DType::float64)));
  EXPECT_TRUE(
      identical(result.output.value().select(0, 1).slice(0, {.start = 2}).contiguous(), zeros({2, 2}, DType::float64)));
  EXPECT_EQ(result.state.count("steps").to_vector<int64_t>(), (std::vector<int64_t>{4, 2, 0}));
}

TEST_F(Unroll, GradientsPassTheCheckWithResetAndLengths) {
  Tensor reset = zeros({2, 4}, DType::boolean);
  reset.select(1, 2).slice(0, {.start = 1}).fill_(1);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{3, 4}, {2});
  const auto function = [&](std::span<const Variable> in) {
    State state = layer_.initial_state(2);
    state.set("h", in[1]);
    const SequenceResult result = layer_.unroll(in[0], state, {.reset = reset, .lengths = lengths});
    return sum(square(result.output)) + sum(result.state["h"]);
  };
  const auto result = gradcheck(function, {input(2, 4), rng_.normal({2, 2}, 0, 1, DType::float64)});
  EXPECT_TRUE(result) << result.message;
}

TEST_F(Unroll, ShowsAVisitorTheTotalDerivativeOfEveryState) {
  // L = sum of all outputs, h <- h / 2 + ..: dL/dh_t = 1 + 1/2 + 1/4 + .., once for every step still to come.
  std::vector<int64_t> steps;
  const auto visitor = [&](const BackwardView& view) {
    EXPECT_EQ(view.layer, "layers.0");
    ASSERT_EQ(view.gradient.size(), 1U);
    EXPECT_EQ(view.gradient[0].first, "h");
    EXPECT_EQ(view.gradient[0].second.shape(), (Shape{1, 2, 2}));
    double expected = 0;
    for (int64_t later = view.first_step; later < 5; ++later) expected = expected / 2 + 1;
    EXPECT_TRUE(identical(view.gradient[0].second.contiguous(), full({1, 2, 2}, expected, DType::float64)));
    steps.push_back(view.first_step);
  };
  sum(layer_.unroll(input(2, 5), start(2, 0), {.visitor = visitor, .path = "layers.0"}).output).backward();
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 3, 2, 1, 0}));
}

TEST_F(Unroll, RefusesWhatDoesNotFit) {
  const auto unroll = [&](const Tensor& x, const State& state, const SequenceOptions& options = {}) {
    layer_.unroll(x, state, options);
  };
  expect_error<ShapeError>([&] { unroll(zeros({2, 4, 5}, DType::float64), start(2, 0)); }, {"D = 3", "[2, 4, 5]"});
  expect_error<ShapeError>([&] { unroll(zeros({4, 3}, DType::float64), start(4, 0)); }, {"[B, T, D]", "[4, 3]"});
  expect_error<ValueError>([&] { unroll(zeros({2, 4, 3}), start(2, 0)); }, {"float64", "float32"});
  expect_error<ShapeError>([&] { unroll(input(2, 4), start(3, 0)); }, {"state h", "[2, 2]", "[3, 2]"});
  expect_error<IndexError>([&] { unroll(input(2, 4), State()); }, {"'h'"});
  expect_error<ShapeError>(
      [&] {
        unroll(input(2, 4), start(2, 0), {.reset = zeros({2, 3}, DType::boolean)});
      },
      {"reset", "[2, 4]", "[2, 3]"});
  expect_error<ValueError>(
      [&] {
        unroll(input(2, 4), start(2, 0), {.reset = zeros({2, 4})});
      },
      {"reset", "bool", "float32"});
  expect_error<ValueError>(
      [&] {
        unroll(input(2, 4), start(2, 0), {.lengths = Tensor::from(std::vector<int64_t>{4, 5}, {2})});
      },
      {"lengths", "[0, 4]", "got 5"});
}

}  // namespace
}  // namespace carousel
