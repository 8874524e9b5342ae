#include <carousel/nn/linear_recurrence.h>

#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

#include <gtest/gtest.h>

#include <cmath>

namespace carousel {
namespace {

constexpr int64_t batch = 3, steps = 40, hidden = 4;  // more steps than one block of a visitor

struct Trial {
  explicit Trial(const Shape& factors) : a(Variable::parameter(rng.uniform(factors, 0.2, 0.9, DType::float64))) {}

  Rng rng{5};
  Variable a;
  Variable b = Variable::parameter(rng.normal({batch, steps, hidden}, 0, 1, DType::float64));
  Variable h0 = Variable::parameter(rng.normal({batch, hidden}, 0, 1, DType::float64));
};

TEST(LinearRecurrence, BehindTheEndOfARowFactorsAndGradientsDoNotMatter) {
  Trial trial({batch, steps, hidden});
  for (const Variable& operand : {trial.a, trial.b}) {
    Tensor numbers = operand.value();
    numbers.select(0, 1).slice(0, {.start = 7}).fill_(NAN);
    numbers.select(0, 2).fill_(INFINITY);
  }
  Tensor start = trial.h0.value();
  start.select(0, 2).fill_(NAN);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{steps, 7, 0}, {batch});
  const SequenceResult result = linear_recurrence(trial.a, trial.b, trial.h0, {.lengths = lengths});
  EXPECT_TRUE(all_finite(result.output.value()));
  (sum(square(result.output)) + sum(result.state["h"])).backward();
  for (const Variable& operand : {trial.a, trial.b, trial.h0}) EXPECT_TRUE(all_finite(operand.grad()));
  const Tensor behind = trial.a.grad().select(0, 1).slice(0, {.start = 7}).contiguous();
  EXPECT_TRUE(identical(behind, zeros(behind.shape(), DType::float64)));
}

TEST(LinearRecurrence, AVisitorSeesStatesAndGradientsInBlocksFromTheEnd) {
  const Trial trial({hidden});
  std::vector<int64_t> first_steps;
  Tensor seen = zeros({steps, batch, hidden}, DType::float64), saved = seen.clone();
  const BackwardVisitor visitor = [&](const BackwardView& view) {
    EXPECT_EQ(view.layer, "layers.2");
    first_steps.push_back(view.first_step);
    const Tensor &h = view.saved.at(0).second, &dh = view.gradient.at(0).second;
    const Slice block{.start = view.first_step, .stop = view.first_step + h.size(0)};
    saved.slice(0, block).copy_(h);
    seen.slice(0, block).copy_(dh);
  };
  const SequenceResult result = linear_recurrence(trial.a, trial.b, trial.h0, {.visitor = visitor, .path = "layers.2"});
  sum(result.output).backward();
  EXPECT_EQ(first_steps, (std::vector<int64_t>{32, 0}));
  EXPECT_TRUE(identical(saved, result.output.value().transpose(0, 1).contiguous()));
  EXPECT_TRUE(identical(seen, trial.b.grad().transpose(0, 1).contiguous()));
}

TEST(LinearRecurrence, AVisitorSeesFactorsThatAreOfEachStep) {
  const Trial trial({batch, steps, hidden});
  Tensor seen = zeros({steps, batch, hidden}, DType::float64);
  const BackwardVisitor visitor = [&seen](const BackwardView& view) {
    ASSERT_EQ(view.saved.size(), 2U);
    EXPECT_EQ(view.saved[1].first, "decay");
    const Tensor& decay = view.saved[1].second;
    seen.slice(0, {.start = view.first_step, .stop = view.first_step + decay.size(0)}).copy_(decay);
  };
  sum(linear_recurrence(trial.a, trial.b, trial.h0, {.visitor = visitor}).output).backward();
  EXPECT_TRUE(identical(seen, trial.a.value().transpose(0, 1).contiguous()));
}

TEST(LinearRecurrence, NoStepsGiveTheStateAsItCame) {
  const Trial trial({hidden});
  const SequenceResult result = linear_recurrence(trial.a, zeros({batch, 0, hidden}, DType::float64), trial.h0);
  EXPECT_EQ(result.output.shape(), (Shape{batch, 0, hidden}));
  EXPECT_TRUE(identical(result.state["h"].value(), trial.h0.value()));
  (sum(result.output) + sum(result.state["h"])).backward();
  EXPECT_TRUE(identical(trial.h0.grad().contiguous(), ones({batch, hidden}, DType::float64)));
}

TEST(LinearRecurrence, ErrorsNameTheRuleAndTheValues) {
  const Trial trial({hidden});
  const Variable &a = trial.a, &b = trial.b, &h0 = trial.h0;
  test::expect_error<ShapeError>([&] { linear_recurrence(a, h0, h0); }, {"[linear_recurrence]", "[3, 4]"});
  test::expect_error<ShapeError>([&] { linear_recurrence(h0, b, h0); }, {"a must be [H]", "[3, 40, 4]", "[3, 4]"});
  test::expect_error<ShapeError>([&] { linear_recurrence(a, b, a); }, {"h0", "[3, 40, 4]", "got [4]"});
  test::expect_error<ValueError>([&] { linear_recurrence(zeros({hidden}), b, h0); }, {"float32", "float64"});
  const Tensor masks = zeros({batch}, DType::boolean);
  test::expect_error<ShapeError>([&] { linear_recurrence(a, b, h0, {.reset = masks}); },
                                 {"[linear_recurrence]", "reset must have shape [3, 40]", "got [3]"});
  const auto with_lengths = [&](const Tensor& lengths) { linear_recurrence(a, b, h0, {.lengths = lengths}); };
  test::expect_error<ShapeError>([&] { with_lengths(zeros({2}, DType::int64)); }, {"lengths", "[3]", "got [2]"});
  test::expect_error<ValueError>([&] { with_lengths(masks); }, {"lengths must be int64", "got bool"});
  for (const int64_t wrong : {41, -3}) {
    test::expect_error<ValueError>(
        [&] {
          with_lengths(Tensor::from(std::vector<int64_t>{9, wrong, 40}, {batch}));
        },
        {"lengths must be in [0, 40]", wrong == 41 ? "got 41" : "got -3"});
  }
}

}  // namespace
}  // namespace carousel
