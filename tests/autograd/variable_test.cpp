#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace carousel {
namespace {

Variable parameter(std::initializer_list<double> values, Shape shape) {
  return Variable::parameter(Tensor::from(values, shape, DType::float64));
}

TEST(Variable, OfATensorHasNoHistory) {
  const Variable x = ones({2});
  EXPECT_FALSE(x.requires_grad());
  EXPECT_FALSE((x + x).requires_grad());
  EXPECT_EQ((x + x).op(), Op::leaf);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Variable, GradientsOfATinyNetworkByHand) {
  const Variable w = parameter({2, -1}, {1, 2});
  const Variable x = parameter({3, 4}, {2, 1});
  const Variable y = sum(square(matmul(w, x)));  // (2*3 - 4)^2 = 4
  EXPECT_EQ(y.value().item(), 4);
  EXPECT_EQ(y.op(), Op::sum);
  y.backward();
  EXPECT_EQ(w.grad().to_vector<double>(), (std::vector<double>{12, 16}));  // 2 * 2 * x
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{8, -4}));   // 2 * 2 * w
}

TEST(Variable, AValueUsedTwiceGetsBothGradients) {
  const Variable x = parameter({3}, {1});
  (x * x + x).backward();
  EXPECT_EQ(x.grad().item(), 7);
}

TEST(Variable, GradientsAddUpUntilZeroGrad) {
  const Variable x = parameter({1, 2}, {2});
  sum(x * 2.0).backward();
  sum(x * 3.0).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{5, 5}));
  Variable handle = x;
  handle.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Variable, ChangingOneGradientInPlaceLeavesTheOthers) {
  const Variable a = parameter({1, 2}, {2}), b = parameter({3, 4}, {2});
  sum(a + b).backward();
  Tensor da = a.grad();
  mul_(da, 10);
  EXPECT_EQ(a.grad().to_vector<double>(), (std::vector<double>{10, 10}));
  EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST(Variable, BroadcastOperandsGetGradientsOfTheirOwnShape) {  // HD-08
  const Variable a = Variable::parameter(ones({3, 1})), b = Variable::parameter(ones({1, 4}));
  sum(a + b).backward();
  EXPECT_EQ(a.grad().shape(), (Shape{3, 1}));
  EXPECT_EQ(b.grad().shape(), (Shape{1, 4}));
  EXPECT_EQ(a.grad().to_vector<float>(), std::vector<float>(3, 4.0f));
  EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(4, 3.0f));
}

TEST(Variable, ACotangentWeighsTheResult) {
  const Variable x = parameter({1, 2, 3}, {3});
  (x * x).backward(Tensor::from({1, 0, -1}, {3}, DType::float64));
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{2, 0, -6}));
}

TEST(Variable, DetachKeepsTheValueAndEndsTheGradient) {
  const Variable x = parameter({3}, {1});
  const Variable y = x * x;
  (y.detach() * x).backward();
  EXPECT_EQ(x.grad().item(), 9);  // 27 if the gradient went through y
}

TEST(Variable, NoGradRecordsNothing) {
  const Variable x = parameter({3}, {1});
  {
    const NoGrad outer;
    { const NoGrad inner; }
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE((x * x).requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_TRUE((x * x).requires_grad());
}

TEST(Variable, RetainGradKeepsTheGradientOfAnIntermediate) {
  const Variable x = parameter({3}, {1});
  Variable y = x * 2.0;
  y.retain_grad();
  (y * y).backward();
  EXPECT_EQ(y.grad().item(), 12);
  EXPECT_EQ(x.grad().item(), 24);
}

TEST(Variable, AHookSeesAndReplacesTheWholeGradient) {
  const Variable x = parameter({3}, {1});
  Variable y = x * 2.0;
  std::vector<double> seen;
  y.add_hook([&](const Tensor& gradient) {
    seen.push_back(gradient.item());
    return gradient * 10.0;
  });
  (y * y).backward();
  EXPECT_EQ(seen, std::vector<double>{12});  // called once, with both contributions
  EXPECT_EQ(x.grad().item(), 240);
}

TEST(Variable, AHookOnALeafSeesWhatThisBackwardAdds) {
  Variable x = parameter({3}, {1});
  std::vector<double> seen;
  x.add_hook([&](const Tensor& gradient) {
    seen.push_back(gradient.item());
    return Tensor();
  });
  (x * 2.0).backward();
  (x * 5.0).backward();
  EXPECT_EQ(seen, (std::vector<double>{2, 5}));
  EXPECT_EQ(x.grad().item(), 7);
}

TEST(Variable, GradReturnsWithoutAccumulating) {
  const Variable x = parameter({3}, {1}), unused = parameter({1}, {1});
  const Variable y = x * x;
  const Variables inputs{x, y, unused};
  const std::vector<Tensor> gradients = grad(y * 2.0, inputs);
  EXPECT_EQ(gradients[0].item(), 12);
  EXPECT_EQ(gradients[1].item(), 2);
  EXPECT_FALSE(gradients[2].defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Variable, GradientsThatGradReturnsAreTheCallersOwn) {
  const Variable a = parameter({1, 2}, {2}), b = parameter({3, 4}, {2});
  const Variables inputs{a, b};
  std::vector<Tensor> gradients = grad(sum(a + b), inputs);
  mul_(gradients[0], 10);
  EXPECT_EQ(gradients[0].to_vector<double>(), (std::vector<double>{10, 10}));
  EXPECT_EQ(gradients[1].to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST(Variable, AConversionGivesTheGradientBackInItsOwnType) {
  const Variable x = Variable::parameter(Tensor::from({1, 2}, {2}));
  sum(to(x, DType::float64) * 2.0).backward();
  EXPECT_EQ(x.grad().dtype(), DType::float32);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Variable, AnInfiniteGradientStopsWhereNothingPassed) {
  const Tensor infinite = full({2}, INFINITY, DType::float64);
  const Variable x = parameter({-1, 2}, {2}), y = parameter({0, 3}, {2});
  relu(x).backward(infinite);
  EXPECT_EQ(x.grad().to_vector<double>(), (std::vector<double>{0, INFINITY}));
  const Variables inputs{x, y};
  const std::vector<Tensor> gradients = grad(maximum(x, y), inputs, infinite);
  EXPECT_EQ(gradients[0].to_vector<double>(), (std::vector<double>{0, 0}));
  EXPECT_EQ(gradients[1].to_vector<double>(), (std::vector<double>{INFINITY, INFINITY}));
}

TEST(Variable, GeluIsFlatOrStraightFarOut) {
  const Variable x = Variable::parameter(Tensor::from({-1e20, 1e20}, {2}));
  sum(gelu(x)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Variable, ThreadsThatShareALeafLoseNoGradient) {
  const Variable x = parameter({1}, {1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([x] {
      for (int k = 0; k < 20'000; ++k) (x * 1.0).backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.grad().item(), 80'000);
}

TEST(Variable, EmptyTensorsHaveEmptyGradients) {
  const Variable x = Variable::parameter(zeros({0, 3}));
  sum(x * 2.0).backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
}

// log(exp(a) + exp(b)), as a whole or in pairs.
TEST(LogSumExp, OverNothingButMinusInfinityPoisonsNoGradientHoweverItIsNested) {  // HD-02
  const double inf = INFINITY;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Variable x = Variable::parameter(Tensor::from({-inf, -inf}, {2}, dtype));
    const Variable two = Variable::parameter(Tensor::scalar(2, dtype));
    const auto expect = [&x, &two](const Variable& z) {
      EXPECT_EQ(z.value().item(), 2);
      z.backward();
      EXPECT_TRUE(identical(x.grad(), zeros({2}, x.dtype())));
      EXPECT_EQ(two.grad().item(), 1);
      for (Variable each : {x, two}) each.zero_grad();
    };
    const Variable y = logsumexp(x, 0);
    EXPECT_EQ(y.value().item(), -inf);
    expect(logsumexp(stack(Variables{y, two}, 0), 0));
    const Variable again = logsumexp(x, 0);
    // exp(2) and its logarithm are rounded: 1e-6 of numbers below 8 at most.
    const Variable by_hand = log(exp(again) + exp(two));
    EXPECT_NEAR(by_hand.value().item(), 2, 1e-6);
    by_hand.backward();
    EXPECT_TRUE(identical(x.grad(), zeros({2}, dtype)));
    EXPECT_NEAR(two.grad().item(), 1, 1e-6);
    for (Variable each : {x, two}) each.zero_grad();
    expect(logsumexp(concatenate(Variables{x, unsqueeze(two, 0)}, 0), 0));
    const Variable rows = Variable::parameter(Tensor::from({1, 2, -inf, -inf}, {2, 2}, dtype));
    const Variable of_rows = logsumexp(rows, -1);
    EXPECT_NEAR(of_rows.value().select(0, 0).item(), 2.313262, 1e-6);
    EXPECT_EQ(of_rows.value().select(0, 1).item(), -inf);
    sum(of_rows).backward();
    EXPECT_TRUE(identical(rows.grad().select(0, 1), zeros({2}, dtype)));
    EXPECT_NEAR(rows.grad().select(0, 0).select(0, 1).item(), 1 / (1 + std::exp(-1.0)), 1e-6);
  }
}

TEST(LogSumExp, NoWayOfASoftmaxOverMinusInfinityMakesANan) {  // HD-02, HD-03
  const Variable rows = Variable::parameter(Tensor::from({1, 2, -INFINITY, -INFINITY}, {2, 2}));
  for (const auto& function :
       {+[](const Variable& x) { return softmax(x, -1); }, +[](const Variable& x) { return log_softmax(x, -1); },
        +[](const Variable& x) { return logsumexp(x, -1); }}) {
    Variable(rows).zero_grad();
    const Variable y = function(rows);
    y.backward(ones(y.shape()));
    EXPECT_TRUE(all_finite(rows.grad()));
    EXPECT_FALSE(any(isnan(y.value())));
  }
}

// HD-07, backwards: what may be reduced gives gradients of the tensor's own shape.
TEST(Variable, ReductionsOfEmptyTensorsHaveEmptyGradients) {
  for (const Shape& shape : {Shape{0, 3}, Shape{2, 0}}) {
    const Variable x = Variable::parameter(zeros(shape));
    const int axis = shape[0] == 0 ? 1 : 0;  // the one that is not empty
    for (const Variable& y : {sum(x), sum(x, {0}), sum(x, {1}), mean(x), max(x, axis), min(x, axis), logsumexp(x, axis),
                              softmax(x, 0), softmax(x, 1)}) {
      Variable(x).zero_grad();
      y.backward(ones(y.shape()));
      EXPECT_EQ(x.grad().shape(), shape) << to_string(y.op());
    }
    EXPECT_THROW(max(x, 1 - axis), ShapeError);
    EXPECT_THROW(min(x, 1 - axis), ShapeError);
  }
}

}  // namespace
}  // namespace carousel
