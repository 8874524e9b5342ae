#include <carousel/autograd/recompute.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/storage.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace carousel {
namespace {

using testing::HasSubstr;
using In = std::span<const Variable>;

Variable parameter(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return Variable::parameter(rng.normal(shape));
}

Variable call(const RecomputedFunction& function, const Variable& x, bool again) {
  return again ? recomputed(function, std::span(&x, 1))[0] : function(std::span(&x, 1))[0];
}

template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const ValueError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Weights that are used twice inside and once outside, on either side: sums whose order shows in the last bit.
struct Network {
  Variable x = parameter({5, 7}, 1), w = parameter({7, 7}, 2), v = parameter({7, 7}, 3);

  Variable loss(bool again) const {
    const RecomputedFunction block = [this](In in) -> Variables {
      const Variable h = tanh(matmul(in[0], w) + in[0]);
      return {tanh(matmul(h, w) + matmul(in[0], v))};
    };
    Variable y = call(block, matmul(x, w), again);
    y = call(block, y, again);
    return sum(square(matmul(y, w))) + sum(x);
  }

  std::vector<Tensor> gradients() const { return {x.grad(), w.grad(), v.grad()}; }
};

TEST(Recompute, GivesTheSameBits) {
  const Network plain, again;
  const Variable expected = plain.loss(false), loss = again.loss(true);
  EXPECT_TRUE(identical(loss.value(), expected.value()));
  expected.backward();
  loss.backward();
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(again.gradients()[i], plain.gradients()[i])) << i;
}

TEST(Recompute, ForgetsWhatWasRecorded) {
  constexpr int64_t n = 1 << 18;  // a size that is not rounded up
  const Variable x = Variable::parameter(ones({n}));
  const RecomputedFunction function = [](In in) -> Variables { return {exp(sin(exp(sin(in[0]))))}; };
  const uint64_t before = storage_stats().live_bytes;
  const Variable y = call(function, x, true);
  EXPECT_EQ(live_nodes(), 1);
  EXPECT_EQ(storage_stats().live_bytes - before, n * sizeof(float));
  EXPECT_EQ(to_string(y.op()), "recomputed");
}

TEST(Recompute, BackwardHoldsOneBlockAtATime) {
  constexpr int64_t n = 1 << 18;
  const RecomputedFunction function = [](In in) -> Variables {
    Variable y = in[0];
    for (int i = 0; i < 10; ++i) y = sin(y);
    return {y};
  };
  const auto peak = [&function](bool again) {
    Variable y = Variable::parameter(ones({n}));
    const uint64_t before = storage_stats().live_bytes;
    reset_storage_peak();
    for (int i = 0; i < 8; ++i) y = call(function, y, again);
    y.backward(ones({n}));
    return static_cast<double>(storage_stats().peak_bytes - before) / (n * sizeof(float));
  };
  EXPECT_GE(peak(false), 80);
  EXPECT_LE(peak(true), 8 + 10 + 3);  // the inputs, a block, and gradients on their way
}

TEST(Recompute, RunsTheFunctionTwice) {
  const Variable x = parameter({3}, 1);
  int calls = 0;
  const RecomputedFunction function = [&calls](In in) -> Variables { return ++calls, Variables{exp(in[0])}; };
  const Variable y = sum(call(function, x, true));
  EXPECT_EQ(calls, 1);
  y.backward();
  EXPECT_EQ(calls, 2);
}

TEST(Recompute, RecordsNothingUnderNoGrad) {
  const Variable x = parameter({3}, 1);
  const NoGrad scope;
  int calls = 0;
  const Variable y = call([&calls](In in) -> Variables { return ++calls, Variables{exp(in[0])}; }, x, true);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST(Recompute, BackwardUnderNoGradRecordsAllTheSame) {
  const Variable x = parameter({3}, 1);
  const Variable y = call([](In in) -> Variables { return {exp(in[0])}; }, x, true);
  const NoGrad scope;
  y.backward(ones({3}));
  EXPECT_TRUE(identical(x.grad(), y.value()));
  EXPECT_FALSE(grad_enabled());
}

TEST(Recompute, AParameterAloneIsReasonToRecord) {
  const Variable x = ones({3}), w = parameter({3}, 1);
  sum(call([&w](In in) -> Variables { return {in[0] * w}; }, x, true)).backward();
  EXPECT_TRUE(identical(w.grad(), ones({3})));
  EXPECT_FALSE(call([](In in) -> Variables { return {in[0] * 2.0}; }, x, true).requires_grad());
}

TEST(Recompute, GradientsReachAnIntermediateThatTheFunctionRefersTo) {
  const Variable x = parameter({3}, 1), w = parameter({3}, 2);
  const Variable middle = exp(w);
  sum(call([&middle](In in) -> Variables { return {in[0] * middle}; }, x, true)).backward();
  EXPECT_TRUE(identical(w.grad(), x.value() * exp(w.value())));
}

TEST(Recompute, ResultsMayBeSeveralUnusedInputsOrWithoutHistory) {
  const std::array<Variable, 3> inputs{parameter({3}, 1), parameter({3}, 2), Variable()};
  const Variables results = recomputed(
      [](In in) -> Variables {
        EXPECT_FALSE(in[2].defined());
        return {in[0] * in[1], exp(in[0]), in[1], Variable(arange(4)), in[0].detach()};
      },
      inputs);
  EXPECT_FALSE(results[3].requires_grad() || results[4].requires_grad());
  (sum(results[0]) + sum(results[2] * 3.0)).backward();
  EXPECT_TRUE(identical(inputs[0].grad(), inputs[1].value()));
  EXPECT_TRUE(identical(inputs[1].grad(), inputs[0].value() + 3));
}

TEST(Recompute, HooksHearTheWholeGradientOnce) {
  Variable x = parameter({3}, 1), w = parameter({3}, 2);
  std::vector<std::string> heard;
  const auto hook = [&heard](const std::string& name) {
    return [&heard, name](const Tensor&) { return heard.push_back(name), Tensor(); };
  };
  x.add_hook(hook("x"));
  w.add_hook(hook("w"));
  Variable y = call(
      [&](In in) -> Variables {
        Variable inside = in[0] * w;
        inside.add_hook(hook("inside"));
        return {inside * w + in[0]};
      },
      x, true);
  y.add_hook(hook("y"));
  y.retain_grad();
  sum(y).backward();
  EXPECT_EQ(heard, (std::vector<std::string>{"y", "inside", "w", "x"}));
  EXPECT_TRUE(identical(y.grad(), ones({3})));
}

TEST(Recompute, GradOfInputsAndParametersLeavesNoGradientBehind) {
  const Network plain, again;
  plain.loss(false).backward();
  const std::array<Variable, 3> inputs{again.x, again.w, again.v};
  const std::vector<Tensor> gradients = grad(again.loss(true), inputs);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(gradients[i], plain.gradients()[i])) << i;
  EXPECT_FALSE(again.w.grad().defined());
}

TEST(Recompute, ARetainedGraphRunsAgainAndAFreedOneDoesNot) {
  const Network network;
  const Variable loss = network.loss(true);
  loss.backward({.retain_graph = true});
  const Tensor once = network.w.grad().clone();
  loss.backward();
  EXPECT_TRUE(identical(network.w.grad(), once + once));

  const Variable x = parameter({3}, 1);
  const Variable y = call([](In in) -> Variables { return {exp(in[0])}; }, x, true);
  y.backward(ones({3}));
  EXPECT_THAT(error_of([&] { y.backward(ones({3})); }), HasSubstr("the graph behind recomputed was freed"));
}

TEST(Recompute, MayBeNested) {
  const auto gradient = [](bool again) {
    const Network network;
    RecomputedFunction block = [&network](In in) -> Variables { return {tanh(matmul(in[0], network.w))}; };
    for (int i = 0; i < 3; ++i) {
      block = [inner = block, &network, again](In in) -> Variables {
        return {call(inner, in[0], again) + network.v * 0.1};
      };
    }
    sum(square(call(block, matmul(network.w, network.v), again))).backward();
    return network.w.grad();
  };
  EXPECT_TRUE(identical(gradient(true), gradient(false)));
  EXPECT_EQ(live_nodes(), 0);
}

TEST(Recompute, ALongChainNeedsNoRecursion) {
  const Variable x = parameter({1}, 1);
  Variable y = x;
  for (int i = 0; i < 100'000; ++i) y = call([](In in) -> Variables { return {in[0] + 1.0}; }, y, true);
  y.backward();
  EXPECT_EQ(x.grad().item(), 1);
  y = Variable();
  EXPECT_EQ(live_nodes(), 0);
}

TEST(Recompute, AnInPlaceChangeOfAnInputOrAParameter) {
  for (const bool of_input : {true, false}) {
    const Variable x = parameter({3}, 1), w = parameter({3}, 2);
    // Of a sum nothing is saved without recomputation: here both are.
    const Variable y = call([&w](In in) -> Variables { return {in[0] + w}; }, x, true);
    Tensor value = of_input ? x.value() : w.value();
    add_(value, 1);
    EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("[recomputed] a value saved for backward was changed"));
    EXPECT_FALSE(x.grad().defined() || w.grad().defined());
  }
}

TEST(Recompute, AnInPlaceChangeOfWhatANestedFunctionReads) {
  const Variable x = parameter({3}, 1), w = parameter({3}, 2);
  const RecomputedFunction inner = [&w](In in) -> Variables { return {in[0] + w}; };
  const Variable y = call([&inner](In in) -> Variables { return {call(inner, in[0], true) * 2.0}; }, x, true);
  Tensor value = w.value();
  add_(value, 1);
  EXPECT_THAT(error_of([&] { sum(y).backward(); }), HasSubstr("[recomputed] a value saved for backward was changed"));
}

TEST(Recompute, AFunctionThatDoesNotDoTheSameIsCaught) {
  const Variable x = parameter({3}, 1);
  int calls = 0;
  const auto loss = [&](const std::function<Variables(In)>& other) {
    calls = 0;
    return sum(call([&calls, other](In in) { return ++calls == 1 ? Variables{exp(in[0])} : other(in); }, x, true));
  };
  const std::string shapes = "[recomputed] the function must give results of the same shapes and dtypes each time";
  const Variable fewer = loss([](In) { return Variables(); });
  EXPECT_EQ(error_of([&] { fewer.backward(); }), shapes);
  const Variable smaller = loss([](In in) { return Variables{sum(in[0])}; });
  EXPECT_EQ(error_of([&] { smaller.backward(); }), shapes);
  const Variable cut = loss([](In in) { return Variables{in[0].detach()}; });
  EXPECT_THAT(error_of([&] { cut.backward(); }), HasSubstr("result 0 has no history any more"));
  const Variable throwing = loss([](In) -> Variables { throw ValueError("mine"); });
  EXPECT_EQ(error_of([&] { throwing.backward(); }), "mine");
  EXPECT_FALSE(x.grad().defined());
  EXPECT_TRUE(grad_enabled());
}

TEST(Recompute, AnomalyModeNamesTheOperationInside) {
  const AnomalyMode scope;
  const Variable x = Variable::parameter(Tensor::from({0, 1}, {2}));
  const Variable y = sum(call([](In in) -> Variables { return {sqrt(in[0]) + 1.0}; }, x, true));
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "[anomaly] a gradient from the backward of sqrt holds an infinity: shape [2]");
  EXPECT_EQ(error_of([&] { call([](In in) -> Variables { return {log(in[0])}; }, x, true); }),
            "[anomaly] the result of log holds an infinity: shape [2]");
}

}  // namespace
}  // namespace carousel
