#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>

#include <cmath>

#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;
using test::scrambled;

using Flags = std::vector<bool>;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

Flags flags(const Tensor& x) { return x.to_vector<bool>(); }

template <class T>
void check_comparisons() {
  Rng rng(31);
  const Tensor a = scrambled<T>({5, 1, 4}, rng), b = scrambled<T>({3, 4}, rng);
  const auto check = [&](const Tensor& y, auto plain) {
    ASSERT_EQ(y.shape(), Shape({5, 3, 4}));
    for_each_index(y.shape(), [&](const Dims& i) { ASSERT_EQ(at<bool>(y, i), plain(at<T>(a, i), at<T>(b, i))); });
  };
  check(equal(a, b), [](T x, T y) { return x == y; });
  check(not_equal(a, b), [](T x, T y) { return x != y; });
  check(less(a, b), [](T x, T y) { return x < y; });
  check(less_equal(a, b), [](T x, T y) { return x <= y; });
  check(greater(a, b), [](T x, T y) { return x > y; });
  check(greater_equal(a, b), [](T x, T y) { return x >= y; });
}

TEST(Compare, BroadcastsForEveryType) {
  check_comparisons<float>();
  check_comparisons<double>();
  check_comparisons<int64_t>();
  check_comparisons<bool>();
}

TEST(Compare, ScalarsAndNan) {
  const Tensor x = Tensor::from({1, nan, 3}, {3});
  EXPECT_EQ(flags(equal(x, 3)), Flags({false, false, true}));
  EXPECT_EQ(flags(less(x, 2)), Flags({true, false, false}));
  EXPECT_EQ(flags(greater(x, 2)), Flags({false, false, true}));
  EXPECT_EQ(flags(equal(x, x)), Flags({true, false, true}));
  EXPECT_EQ(flags(not_equal(x, x)), Flags({false, true, false}));
  EXPECT_EQ(flags(less_equal(x, x)), Flags({true, false, true}));
  EXPECT_EQ(equal(zeros({0, 2}), zeros({1, 1})).shape(), Shape({0, 2}));
}

TEST(Compare, Logic) {
  const Tensor a = Tensor::from({0, 0, 1, 1}, {4}, DType::boolean), b = Tensor::from({0, 1, 0, 1}, {4}, DType::boolean);
  EXPECT_EQ(flags(logical_not(a)), Flags({true, true, false, false}));
  EXPECT_EQ(flags(logical_and(a, b)), Flags({false, false, false, true}));
  EXPECT_EQ(flags(logical_or(a, b)), Flags({false, true, true, true}));
  EXPECT_TRUE(any(a));
  EXPECT_FALSE(all(a));
  EXPECT_TRUE(all(a.slice(0, {.start = 2})));
  EXPECT_FALSE(any(a.slice(0, {.stop = 2})));
  EXPECT_TRUE(all(zeros({0}, DType::boolean)));
  EXPECT_FALSE(any(zeros({0}, DType::boolean)));
  Tensor late = zeros({100, 1000}, DType::boolean);
  late.select(0, 99).select(0, 999).fill_(1);
  EXPECT_TRUE(any(late.transpose(0, 1)));
}

TEST(Compare, NanAndInfinityAreFound) {
  const Tensor x = Tensor::from({0, nan, inf, -inf, 1e308}, {5}, DType::float64);
  EXPECT_EQ(flags(isnan(x)), Flags({false, true, false, false, false}));
  EXPECT_EQ(flags(isfinite(x)), Flags({true, false, false, false, true}));
  EXPECT_EQ(flags(isfinite(arange(2))), Flags({true, true}));
  EXPECT_EQ(flags(isnan(zeros({1}, DType::boolean))), Flags({false}));
  EXPECT_FALSE(all_finite(x));
  EXPECT_FALSE(all_finite(x.slice(0, {.start = 2, .stop = 3})));
  EXPECT_TRUE(all_finite(x.slice(0, {.step = 4})));
  EXPECT_TRUE(all_finite(arange(3)));
  EXPECT_TRUE(all_finite(zeros({0})));
  for (DType dtype : {DType::float32, DType::float64}) {
    Tensor large = zeros({300, 401}, dtype);  // several chunks
    EXPECT_TRUE(all_finite(large));
    for (int64_t row : {0, 150, 299}) {
      large.select(0, row).select(0, 400).fill_(std::numeric_limits<double>::infinity());
      EXPECT_FALSE(all_finite(large)) << row;
      EXPECT_FALSE(all_finite(large.transpose(0, 1))) << row;
      large.fill_(0);
    }
  }
}

TEST(Compare, WhereBroadcastsAllThree) {
  Rng rng(32);
  const Tensor condition = less(scrambled<double>({4, 1}, rng), 0);
  const Tensor a = scrambled<int64_t>({3}, rng), b = scrambled<int64_t>({2, 1, 1}, rng);
  const Tensor y = where(condition, a, b);
  ASSERT_EQ(y.shape(), Shape({2, 4, 3}));
  for_each_index(y.shape(), [&](const Dims& i) {
    EXPECT_EQ(at<int64_t>(y, i), at<bool>(condition, i) ? at<int64_t>(a, i) : at<int64_t>(b, i));
  });
  // What is not chosen leaves no trace.
  EXPECT_EQ(where(ones({}, DType::boolean), Tensor::scalar(1), Tensor::scalar(nan)).item(), 1);
  EXPECT_EQ(where(zeros({0}, DType::boolean), ones({}), zeros({})).numel(), 0);
}

TEST(Compare, IdenticalMeansBits) {
  const Tensor x = arange(6, DType::float32).reshape({2, 3});
  EXPECT_TRUE(identical(x, x.transpose(0, 1).clone().transpose(0, 1)));
  EXPECT_FALSE(identical(x, x.to(DType::float64)));
  EXPECT_FALSE(identical(x, x.reshape({3, 2})));
  EXPECT_FALSE(identical(Tensor::scalar(0.0), Tensor::scalar(-0.0)));
  EXPECT_TRUE(identical(full({2}, nan), full({2}, nan)));
  EXPECT_TRUE(identical(zeros({0}), zeros({0})));
}

TEST(Compare, AllCloseMeansWithinTolerance) {
  const auto scalar = [](double v) { return Tensor::scalar(v, DType::float64); };
  EXPECT_TRUE(all_close(scalar(100.5), scalar(100), 0.0051, 0));
  EXPECT_FALSE(all_close(scalar(100.5), scalar(100), 0.0049, 0));
  EXPECT_TRUE(all_close(scalar(1e-9), scalar(0)));
  EXPECT_FALSE(all_close(scalar(1e-7), scalar(0)));
  EXPECT_TRUE(all_close(scalar(nan), scalar(nan)));
  EXPECT_FALSE(all_close(scalar(nan), scalar(0), 1, inf));
  EXPECT_TRUE(all_close(scalar(-inf), scalar(-inf)));
  EXPECT_FALSE(all_close(scalar(inf), scalar(-inf), inf, inf));
  EXPECT_FALSE(all_close(scalar(inf), scalar(1), inf, inf));
  EXPECT_TRUE(all_close(ones({2, 3}), ones({3})));
}

TEST(Compare, Errors) {
  const Tensor x = zeros({2}), mask = zeros({2}, DType::boolean), whole = arange(2);
  expect_error<ValueError>("[less] operands must have one dtype: got float32 and int64", [&] { less(x, whole); });
  expect_error<ShapeError>("[equal] shapes must be equal or broadcast: got [2] and [3]", [&] { equal(x, zeros({3})); });
  expect_error<ValueError>("[equal] a number for int64 must be whole and fit into 64 bits: got 0.5",
                           [&] { equal(whole, 0.5); });
  expect_error<ValueError>("[logical_and] needs bool: got float32", [&] { logical_and(mask, x); });
  expect_error<ValueError>("[logical_not] needs bool: got int64", [&] { logical_not(whole); });
  expect_error<ValueError>("[where] needs bool: got float32", [&] { where(x, x, x); });
  expect_error<ValueError>("[where] operands must have one dtype: got float32 and int64",
                           [&] { where(mask, x, whole); });
  expect_error<ShapeError>("[where] shapes must be equal or broadcast: got [2] and [5]",
                           [&] { where(mask, zeros({5}), zeros({5})); });
  expect_error<ValueError>("[all] needs bool: got float32", [&] { all(x); });
  expect_error<ShapeError>("[all_close] shapes must be equal or broadcast: got [2] and [3]",
                           [&] { all_close(x, zeros({3})); });
}

}  // namespace
}  // namespace carousel
