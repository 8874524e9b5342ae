#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/index.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/node.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/storage.h>

#include <gtest/gtest.h>

#include <cmath>

namespace carousel {
namespace {

Variable scalar(double value) { return Variable::parameter(Tensor::scalar(value, DType::float64)); }

TEST(Graph, ParentsAndNamesCanBeRead) {
  const Variable x = scalar(2);
  const Variable y = tanh(x * 3.0);
  ASSERT_TRUE(y.node());
  EXPECT_EQ(to_string(y.op()), "tanh");
  EXPECT_EQ(to_string(y.node()->parents()[0].node->op()), "mul");
  EXPECT_EQ(y.node()->parents()[0].node->parents()[0].node, x.node());
}

TEST(Graph, IsFreedWithTheLastHandle) {
  const Variable x = scalar(2);
  EXPECT_EQ(live_nodes(), 0);
  {
    const Variable y = exp(x) * sin(x);
    EXPECT_EQ(live_nodes(), 3);
  }
  EXPECT_EQ(live_nodes(), 0);
}

TEST(Graph, BackwardFreesWhatItPassed) {
  const Variable x = scalar(2);
  const Variable y = exp(exp(x));
  y.backward();
  EXPECT_EQ(live_nodes(), 1);  // y's own node, without its closure and parents
}

TEST(Graph, DiamondsAreVisitedOnce) {
  const Variable x = scalar(1);
  Variable y = x;
  for (int i = 0; i < 40; ++i) y = y + y;  // 2^40 paths
  y.backward();
  EXPECT_EQ(x.grad().item(), std::pow(2.0, 40));
}

TEST(Graph, ARetainedGraphGivesTheSameGradientAgain) {
  const Variable x = scalar(0.3);
  const Variable y = tanh(exp(x)) * x;
  y.backward({.retain_graph = true});
  const double once = x.grad().item();
  y.backward();
  EXPECT_EQ(x.grad().item(), 2 * once);
}

TEST(Graph, UnusedResultsOfASplitCountAsZero) {
  const Variable x = Variable::parameter(ones({4}));
  const std::vector<int64_t> sizes{1, 3};
  sum(split(x, sizes, 0)[1]).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 1, 1, 1}));
}

TEST(Graph, GradientsOfSlicesThatLieInOneArrayAreNotCopied) {
  Rng rng(1);
  for (const int64_t axis : {0, 1, -1}) {
    const Variable x = Variable::parameter(zeros({2, 3, 4}));
    Variable y = x * 2.0;
    Tensor arrived;
    y.add_hook([&arrived](const Tensor& dy) {
      arrived = dy;
      return dy;
    });
    const Tensor dy = rng.normal({2, 3, 4});
    stack(unbind(y, axis), axis).backward(dy);
    EXPECT_EQ(arrived.storage(), dy.storage()) << axis;
    EXPECT_TRUE(identical(arrived, dy)) << axis;
  }
}

TEST(Graph, GradientsOfSlicesInAnotherOrderAreJoined) {
  const Variable x = Variable::parameter(zeros({3, 2}));
  const Variables rows = unbind(x, 0);
  stack(Variables{rows[2], rows[0], rows[1]}, 0).backward(Tensor::from({1, 2, 3, 4, 5, 6}, {3, 2}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{3, 4, 5, 6, 1, 2}));
}

TEST(Graph, GradientsThroughUnrolledWeightsMatchTheClosedForm) {
  // h_t = w h_{t-1}: d h_3 / dw = 3 w^2 h_0 when nothing is cut.
  const Variable w = scalar(0.2);
  Variable h = Tensor::scalar(0.9, DType::float64);
  for (int t = 0; t < 3; ++t) h = w * h;
  h.backward();
  EXPECT_NEAR(w.grad().item(), 0.108, 1e-15);
}

TEST(Graph, ASecondGradientIsAddedWhereTheFirstLies) {
  constexpr int64_t n = 1 << 18;  // a size that is not rounded up
  const Variable x = Variable::parameter(ones({n}, DType::float32));
  const Variable y = sum(x * 3.0) + sum(x * 2.0) + sum(x * 4.0);
  const uint64_t before = storage_stats().live_bytes;
  reset_storage_peak();
  y.backward();
  EXPECT_EQ(x.grad().data<float>()[n - 1], 9);
  // The first gradient of x and the one that is added to it; a third place for their sum was not needed.
  EXPECT_LT(storage_stats().peak_bytes - before, 3 * n * sizeof(float));
}

TEST(Graph, AGradientThatIsOneNumberSeenManyTimesIsNotAddedTo) {
  const Variable x = Variable::parameter(ones({3}, DType::float64));
  (sum(x * x) + sum(x) * 3.0).backward();  // sum gives its gradient back expanded, and comes first
  for (int i = 0; i < 3; ++i) EXPECT_EQ(x.grad().data<double>()[i], 5);
}

TEST(Graph, AGradientThatAnotherHasTooIsNotAddedTo) {
  const Variable a = Variable::parameter(ones({3}, DType::float64)), b = Variable::parameter(ones({3}, DType::float64));
  const Variable first = a * 2.0;
  sum((a + b) * 5.0 + first).backward();  // a + b, which gives both the same tensor, comes before a * 2
  EXPECT_EQ(a.grad().data<double>()[0], 7);
  EXPECT_EQ(b.grad().data<double>()[0], 5);
}

// d sum(w rows(table, index)) / d table, w = 1, 2, .. by row of the result.
struct LookedUp {
  Variable table = Variable::parameter(ones({1 << 9, 1 << 9}, DType::float32));  // a size that is not rounded up
  Tensor index = Tensor::from({7, 0, 7}, {3}, DType::int64);

  Variable loss() const { return sum(take_rows(table, index) * linspace(1, 3, 3).unsqueeze(1)); }
  // The gradient of the first number in a row.
  double in_row(int64_t row) const { return table.grad().select(0, row).select(0, 0).item(); }
};

TEST(Graph, TheGradientOfALookUpIsAddedWhereAnotherLies) {
  const LookedUp look;
  const Variable looked_up = look.loss();
  const Variable y = looked_up + sum(look.table * 10.0);  // what was made last comes first
  const uint64_t before = storage_stats().live_bytes;
  reset_storage_peak();
  y.backward();
  EXPECT_EQ(look.in_row(7), 14);
  EXPECT_EQ(look.in_row(0), 12);
  EXPECT_EQ(look.in_row(1), 10);
  // The gradient of the table, and some rows; the zeros of a second table were never there.
  const uint64_t table = look.table.value().numel() * sizeof(float);
  EXPECT_LT(storage_stats().peak_bytes - before, table + table / 2);
}

TEST(Graph, TheGradientOfALookUpIsAddedToZerosWhereItComesFirst) {
  const LookedUp look;
  const Variable other = sum(look.table * 10.0);
  (other + look.loss()).backward();
  EXPECT_EQ(look.in_row(7), 14);
  EXPECT_EQ(look.in_row(1), 10);
  const LookedUp alone;
  alone.loss().backward();
  EXPECT_EQ(alone.in_row(7), 4);
  EXPECT_EQ(alone.in_row(1), 0);
}

TEST(Graph, TheGradientOfALookUpIsNotAddedToWhatAnotherHasToo) {
  const Variable a = Variable::parameter(ones({3}, DType::float64)), b = Variable::parameter(ones({3}, DType::float64));
  const Tensor index = Tensor::from({2}, {1}, DType::int64);
  const Variable first = sum(take_rows(a, index)) + sum(slice(a, 0, {.start = 1})) + select(a, 0, 1);
  (sum((a + b) * 5.0) + first).backward();  // a + b, which gives both the same tensor, comes before the parts of a
  EXPECT_EQ(a.grad().to_vector<double>(), (std::vector<double>{5, 7, 7}));
  EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{5, 5, 5}));
}

TEST(Graph, TheGradientOfALookUpIsAddedToOneThatLiesTransposed) {
  const Variable table = Variable::parameter(ones({2, 3}, DType::float64));
  const Variable turned = transpose(table, 0, 1) * linspace(0, 5, 6, DType::float64).reshape({3, 2});
  (sum(take_rows(table, Tensor::from({1}, {1}, DType::int64))) + sum(turned)).backward();
  EXPECT_EQ(table.grad().to_vector<double>(), (std::vector<double>{0, 2, 4, 2, 4, 6}));
}

TEST(Graph, StepsTakenFromASequenceAddTheirGradientsToOneMemory) {
  constexpr int64_t steps = 64;
  const Variable x = Variable::parameter(ones({steps, 1 << 12}, DType::float32));
  Variable y = Tensor::scalar(0);
  for (int64_t t = 0; t < steps; ++t) {
    y = y + sum(select(x, 0, t)) * static_cast<double>(t) + sum(slice(x, 0, {.start = t})) * 100.0;
  }
  const uint64_t before = storage_stats().live_bytes;
  reset_storage_peak();
  y.backward();
  for (int64_t t = 0; t < steps; ++t) EXPECT_EQ(x.grad().select(0, t).select(0, 5).item(), 100.0 * (t + 1) + t);
  EXPECT_LT(storage_stats().peak_bytes - before, 2 * x.value().numel() * sizeof(float));
}

TEST(Graph, FloatAndDoubleAgree) {
  const auto gradient = [](DType dtype) {
    const Variable x = Variable::parameter(linspace(-1, 1, 12, dtype).reshape({3, 4}));
    const Variable w = Variable::parameter(linspace(1, 2, 8, dtype).reshape({2, 4}));
    sum(square(tanh(linear(x, w, {})))).backward();
    return w.grad().to(DType::float64);
  };
  EXPECT_TRUE(all_close(gradient(DType::float32), gradient(DType::float64), 1e-5, 1e-6));
}

}  // namespace
}  // namespace carousel
