#include "kernels_common.h"

#include <carousel/tensor/kernels/layer_norm.h>
#include <carousel/tensor/kernels/softmax_cross_entropy.h>

namespace carousel::kernels {
namespace {

template <class T>
class SoftmaxCrossEntropy : public ForFloats<T> {};
TYPED_TEST_SUITE(SoftmaxCrossEntropy, Floats);

template <class T>
constexpr double softmax_bound = sizeof(T) == 4 ? 8e-6 : 2e-14;  // of softmax_cross_entropy.h

TYPED_TEST(SoftmaxCrossEntropy, EqualsThePlainTwinForOddSizes) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t classes : {1, 2, 15, 16, 65, 1037}) {
      const int64_t rows = 7;
      const auto x = random_numbers<T>(rows * classes, 1, 3), dloss = random_numbers<T>(rows, 2);
      std::vector<int64_t> target;
      for (int64_t r = 0; r < rows; ++r) target.push_back(r == 3 ? -1 : r * 11 % classes);
      std::vector<T> loss(rows), p(x.size()), dx(x.size()), plain_loss(rows), plain_p(x.size()), plain_dx(x.size());
      softmax_cross_entropy(rows, classes, x.data(), target.data(), -1, loss.data(), p.data());
      plain::softmax_cross_entropy(rows, classes, x.data(), target.data(), -1, plain_loss.data(), plain_p.data());
      softmax_cross_entropy_backward(rows, classes, p.data(), target.data(), -1, dloss.data(), dx.data());
      plain::softmax_cross_entropy_backward(rows, classes, plain_p.data(), target.data(), -1, dloss.data(),
                                            plain_dx.data());
      for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], plain_p[i], softmax_bound<T> * plain_p[i]);
      for (int64_t r = 0; r < rows; ++r) {
        EXPECT_NEAR(loss[r], plain_loss[r], softmax_bound<T> + 2 * rounding<T> * plain_loss[r]);
      }
      EXPECT_LE(largest_difference(dx, plain_dx), 4 * softmax_bound<T>);  // |dloss| is below 4
      EXPECT_EQ(loss[3], 0);
      for (int64_t j = 0; j < classes; ++j) EXPECT_EQ(dx[3 * classes + j], 0) << "ignored";
    }
  });
}

TYPED_TEST(SoftmaxCrossEntropy, ALargeCommonOffsetLosesNothing) {
  using T = TypeParam;
  for_each_target([] {
    for (const double offset : {1.0, 1e4, 1e6, 1e8, -1e8}) {
      const std::vector<T> x(2, static_cast<T>(offset));
      const int64_t target = 0;
      const T dloss = 1;
      std::vector<T> p(2), dx(2);
      T loss = 0;
      softmax_cross_entropy(1, 2, x.data(), &target, {}, &loss, p.data());
      softmax_cross_entropy_backward<T>(1, 2, p.data(), &target, {}, &dloss, dx.data());
      EXPECT_EQ(loss, static_cast<T>(std::log(2.0))) << offset;
      EXPECT_EQ(dx, (std::vector<T>{-0.5, 0.5})) << offset;
    }
  });
}

TYPED_TEST(SoftmaxCrossEntropy, FarLogitsOneClassInfinityAndNan) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for_each_target([&] {
    const auto loss_of = [](const std::vector<T>& x, int64_t target) {
      std::vector<T> p(x.size());
      T loss = 0;
      softmax_cross_entropy(1, static_cast<int64_t>(x.size()), x.data(), &target, {}, &loss, p.data());
      return std::pair(loss, p);
    };
    EXPECT_EQ(loss_of({1000, 0}, 0).first, 0);
    EXPECT_EQ(loss_of({1000, 0}, 1).first, 1000);
    EXPECT_EQ(loss_of({T{0.7}}, 0), std::pair(T{0}, std::vector<T>{1}));
    EXPECT_EQ(loss_of({0, -infinity}, 1).first, infinity);
    EXPECT_EQ(loss_of({-infinity, -infinity}, 0), std::pair(infinity, std::vector<T>(2, 0)));
    for (size_t at = 0; at < 20; ++at) {
      std::vector<T> x(20, 1);
      x[at] = nan;
      const auto [loss, p] = loss_of(x, 7);
      EXPECT_TRUE(std::isnan(loss)) << at;
      EXPECT_TRUE(std::isnan(p[0]) && std::isnan(p[19])) << at;
    }
  });
}

TYPED_TEST(SoftmaxCrossEntropy, NothingComesOfNoRowsAndNoClasses) {
  using T = TypeParam;
  for (const int64_t rows : {0, 5}) {
    const std::vector<int64_t> ignored(rows, -1);
    const std::vector<T> dloss(rows, 1);
    std::vector<T> loss(rows, 7);
    for (const int64_t classes : {0, 3}) {
      if (rows > 0 && classes > 0) continue;
      softmax_cross_entropy(rows, classes, static_cast<T*>(nullptr), ignored.data(), -1, loss.data(),
                            static_cast<T*>(nullptr));
      softmax_cross_entropy_backward<T>(rows, classes, nullptr, ignored.data(), -1, dloss.data(), nullptr);
      EXPECT_EQ(loss, std::vector<T>(rows, 0));
    }
  }
}

TYPED_TEST(SoftmaxCrossEntropy, DoesNotDependOnTheThreadCount) {
  using T = TypeParam;
  const auto x = random_numbers<T>(1000 * 65, 3);
  const std::vector<int64_t> target(1000, 5);
  expect_same_for_every_thread_count([&] {
    std::vector<T> loss(1000), p(x.size());
    softmax_cross_entropy(1000, 65, x.data(), target.data(), {}, loss.data(), p.data());
    loss.insert(loss.end(), p.begin(), p.end());
    return loss;
  });
}

template <class T>
class LayerNormKernel : public ForFloats<T> {};
TYPED_TEST_SUITE(LayerNormKernel, Floats);

/// Forward and backward, all results in one array.
template <class T, class Forward, class Backward>
std::vector<T> layer_norm_results(const LayerNormShape& shape, double offset, Forward forward, Backward backward) {
  const int64_t n = shape.size, all = shape.rows * n;
  auto x = random_numbers<T>(all, 1);
  for (T& value : x) value += static_cast<T>(offset);
  const auto weight = random_numbers<T>(n, 2), bias = random_numbers<T>(n, 3), dy = random_numbers<T>(all, 4);
  std::vector<T> results(2 * all + 2 * n), mean(shape.rows), r(shape.rows);
  T *const y = results.data(), *const dx = y + all, *const dweight = dx + all, *const dbias = dweight + n;
  forward(shape, x.data(), weight.data(), bias.data(), y, mean.data(), r.data());
  backward(shape, x.data(), weight.data(), mean.data(), r.data(), dy.data(), dx, dweight, dbias);
  return results;
}

template <class T>
std::vector<T> fast_layer_norm(const LayerNormShape& shape, double offset) {
  return layer_norm_results<T>(
      shape, offset, [](const auto&... arguments) { layer_norm(arguments...); },
      [](const auto&... arguments) { layer_norm_backward(arguments...); });
}

template <class T>
std::vector<T> plain_layer_norm(const LayerNormShape& shape, double offset) {
  return layer_norm_results<T>(shape, offset, plain::layer_norm<T>, plain::layer_norm_backward<T>);
}

TYPED_TEST(LayerNormKernel, EqualsThePlainTwinForOddSizes) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t size : {2, 7, 16, 33, 130}) {
      for (const bool centered : {true, false}) {
        const LayerNormShape shape{.rows = 150, .size = size, .eps = 1e-5, .centered = centered};
        // Results are up to 15 (dweight: sums of 150 terms of both signs, up to 60), and two numbers in a row may lie
        // so close that r is 100.
        const double bound = static_cast<double>(size + 8 + 150) * rounding<T> * 100;
        EXPECT_LE(largest_difference(fast_layer_norm<T>(shape, 0), plain_layer_norm<T>(shape, 0)), bound)
            << size << centered;
      }
    }
  });
}

TYPED_TEST(LayerNormKernel, ALargeMeanLeavesTheVariance) {
  using T = TypeParam;
  const LayerNormShape shape{.rows = 1, .size = 64, .eps = 0};
  std::vector<T> x(64), y(64), weight(64, 1), bias(64, 0);
  for (int i = 0; i < 64; ++i) x[i] = static_cast<T>(1e6 + (i % 2 == 0 ? 1 : -1));  // mean of squares: 1e12 + 1
  T mean = 0, r = 0;
  for_each_target([&] {
    layer_norm(shape, x.data(), weight.data(), bias.data(), y.data(), &mean, &r);
    EXPECT_EQ(mean, static_cast<T>(1e6));
    EXPECT_EQ(r, 1);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], -1);
  });
}

TYPED_TEST(LayerNormKernel, DoesNotDependOnTheThreadCountAndCarriesNan) {
  using T = TypeParam;
  const LayerNormShape shape{.rows = 300, .size = 20, .eps = 1e-5};
  expect_same_for_every_thread_count([&] { return fast_layer_norm<T>(shape, 0); });
  std::vector<T> x(20, 1), y(20), weight(20, 1), bias(20, 0);
  x[19] = std::numeric_limits<T>::quiet_NaN();
  T mean = 0, r = 0;
  layer_norm({.rows = 1, .size = 20, .eps = 1e-5}, x.data(), weight.data(), bias.data(), y.data(), &mean, &r);
  EXPECT_TRUE(std::isnan(y[0]));
}

}  // namespace
}  // namespace carousel::kernels
