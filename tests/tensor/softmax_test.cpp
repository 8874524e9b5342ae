#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/softmax.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <cmath>

#include "restore_threads.h"
#include "support.h"

namespace carousel {
namespace {

using test::expect_error;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Errors in units of the error that rounding explains must stay below 1.
template <class T>
void rows_match_the_definition() {
  constexpr double eps = std::numeric_limits<T>::epsilon();
  Rng rng(1);
  for (int64_t n : {1, 2, 7, 65, 1000, 3000}) {
    const Tensor x = rng.normal({3, n}, 50, 10, dtype_of<T>());
    const Tensor p = softmax(x, -1), log_p = log_softmax(x, -1), total = logsumexp(x, -1);
    double worst_share = 0, worst_log = 0;
    for (int64_t row = 0; row < 3; ++row) {
      const T* values = x.data<T>() + row * n;
      const long double largest = *std::max_element(values, values + n);
      long double sum_of_exp = 0;
      for (int64_t i = 0; i < n; ++i) sum_of_exp += std::exp(values[i] - largest);
      const long double expected = largest + std::log(sum_of_exp);
      EXPECT_NEAR(total.data<T>()[row], expected, std::abs(expected) * eps);
      for (int64_t i = row * n; i < (row + 1) * n; ++i) {
        const long double shifted = values[i - row * n] - largest, share = std::exp(shifted) / sum_of_exp;
        const double share_error = std::abs(p.data<T>()[i] / share - 1) / (eps * (8 - shifted));
        const double log_error = std::abs(log_p.data<T>()[i] - (values[i - row * n] - expected)) / (100 * eps);
        worst_share = std::max(worst_share, share_error);  // 8 + |x - M| as kernels/softmax.h says
        worst_log = std::max(worst_log, log_error);        // logsumexp is below 100, and rounded
      }
    }
    EXPECT_LT(worst_share, 1) << n;
    EXPECT_LT(worst_log, 1) << n;
  }
}

TEST(Softmax, RowsMatchTheDefinition) {
  rows_match_the_definition<float>();
  rows_match_the_definition<double>();
}

TEST(Softmax, WorksAlongAnyAxisOfAnyView) {
  Rng rng(2);
  const Tensor x = rng.normal({3, 4, 5}).transpose(0, 2);
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor rows = x.transpose(axis, 2).clone();
    EXPECT_TRUE(identical(softmax(x, axis), softmax(rows, 2).transpose(axis, 2)));
    EXPECT_TRUE(identical(log_softmax(x, axis - 3), log_softmax(rows, 2).transpose(axis, 2)));
    EXPECT_TRUE(identical(logsumexp(x, axis, keep_axes), logsumexp(rows, 2, keep_axes).transpose(axis, 2)));
    EXPECT_TRUE(softmax(x, axis).is_contiguous());
  }
}

TEST(Softmax, ARowOfMinusInfinity) {  // HD-02, HD-03
  const Tensor x = Tensor::from({1, 2, -inf, -inf}, {2, 2});
  const Tensor total = logsumexp(x, 1);
  EXPECT_NEAR(total.data<float>()[0], 2.313262, 1e-6);  // the digits given
  EXPECT_EQ(total.data<float>()[1], -inf);
  EXPECT_EQ(softmax(x, 1).data<float>()[2], 0);
  EXPECT_EQ(softmax(x, 1).data<float>()[3], 0);
  EXPECT_EQ(log_softmax(x, 1).data<float>()[3], -inf);
  EXPECT_EQ(softmax(Tensor::from({-inf, 3}, {2}), 0).to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Softmax, PlusInfinityAndNaN) {
  const Tensor x = Tensor::from({inf, 1, nan, 1}, {2, 2}, DType::float64);
  EXPECT_EQ(logsumexp(x, 1).data<double>()[0], inf);
  EXPECT_TRUE(std::isnan(logsumexp(x, 1).data<double>()[1]));
  for (const Tensor& y : {softmax(x, 1), log_softmax(x, 1)}) {
    EXPECT_TRUE(std::isnan(y.data<double>()[0]));
    EXPECT_TRUE(std::isnan(y.data<double>()[2]));
    EXPECT_TRUE(std::isnan(y.data<double>()[3]));
  }
  EXPECT_EQ(softmax(x, 1).data<double>()[1], 0);
  EXPECT_EQ(log_softmax(x, 1).data<double>()[1], -inf);
}

TEST(Softmax, LargeOffsetsDoNotSwallowTheSum) {  // HD-01
  for (double v : {1.0, 1e4, 1e6, 1e8, -1e8}) {
    EXPECT_NEAR(log_softmax(full({2}, v, DType::float64), 0).data<double>()[0], -std::log(2.0),
                1e-15 + 2e-16 * std::abs(v));  // the rounding of v + log 2
    EXPECT_EQ(softmax(full({2}, v), 0).to_vector<float>(), (std::vector<float>{0.5, 0.5}));
  }
  EXPECT_EQ(log_softmax(Tensor::from({1000, 0}, {2}), 0).to_vector<float>(), (std::vector<float>{0, -1000}));
}

template <class T>
void log_softmax_keeps_its_digits() {
  constexpr double eps = std::numeric_limits<T>::epsilon();
  for (double v : {1.0, 1e6, -1e6, 1e8, -1e8}) {
    const Tensor same = log_softmax(full({3, 65}, v, dtype_of<T>()), 1);
    for (T y : same.to_vector<T>()) EXPECT_NEAR(y, -std::log(65.0), 4 * eps) << v;  // half a step of numbers below 8
    const std::vector<T> apart = log_softmax(Tensor::from({v, v - 64, v + 8}, {3}, dtype_of<T>()), 0)
                                     .template to_vector<T>();  // all exact in float
    const double log_sum = std::log(1 + std::exp(-8.0) + std::exp(-72.0));
    EXPECT_NEAR(apart[0], -8 - log_sum, 8 * eps) << v;
    EXPECT_NEAR(apart[1], -72 - log_sum, 72 * eps) << v;
    EXPECT_NEAR(apart[2], -log_sum, 8 * eps * log_sum) << v;  // the error of exp(-8), 8 units
  }
}

TEST(Softmax, LogSoftmaxKeepsItsDigitsAtLargeOffsets) {
  log_softmax_keeps_its_digits<float>();
  log_softmax_keeps_its_digits<double>();
}

TEST(Softmax, EmptyTensorsAndErrors) {
  EXPECT_EQ(logsumexp(Tensor({2, 0}), 1).to_vector<float>(), std::vector<float>(2, -inf));
  EXPECT_EQ(softmax(Tensor({2, 0}), 1).shape(), Shape({2, 0}));
  EXPECT_EQ(log_softmax(Tensor({0, 2}), 1).shape(), Shape({0, 2}));
  EXPECT_EQ(logsumexp(Tensor({0, 2}), 1).shape(), Shape({0}));
  expect_error<IndexError>("[softmax] axis must be in [-1, 0]: got 1", [] { softmax(ones({2}), 1); });
  expect_error<ValueError>("[log_softmax] needs float32 or float64: got int64", [] { log_softmax(arange(3), 0); });
  expect_error<ValueError>("[logsumexp] needs float32 or float64: got bool",
                           [] { logsumexp(ones({2}, DType::boolean), 0); });
}

TEST(Softmax, TheThreadCountChangesNoBit) {
  Rng rng(5);
  const Tensor x = rng.normal({500, 65});
  const test::RestoreThreads restore;
  set_threads(1);
  const Tensor one = softmax(x, 1), one_log = log_softmax(x, 1);
  set_threads(3);
  EXPECT_TRUE(identical(softmax(x, 1), one));
  EXPECT_TRUE(identical(log_softmax(x, 1), one_log));
}

TEST(Softmax, KernelsWorkInPlace) {
  Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2});
  const Tensor expected = softmax(x, 1);
  kernels::softmax(2, 2, x.data<float>(), x.mutable_data<float>());
  EXPECT_TRUE(identical(x, expected));
}

}  // namespace
}  // namespace carousel
