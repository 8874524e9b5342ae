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

TEST(Copy, VectorsGoInAndOut) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Tensor x = Tensor::from(values, {2, 3});
  EXPECT_EQ(x.dtype(), DType::float32);
  EXPECT_EQ(x.to_vector<float>(), values);
  EXPECT_EQ(x.transpose(0, 1).to_vector<float>(), std::vector<float>({1, 4, 2, 5, 3, 6}));
  const std::vector<bool> flags{true, false, true};
  EXPECT_EQ(Tensor::from(flags, {3}).to_vector<bool>(), flags);
  EXPECT_EQ(Tensor::from({1, 2}, {2}, DType::int64).to_vector<int64_t>(), std::vector<int64_t>({1, 2}));
  EXPECT_TRUE(Tensor::from(std::vector<double>{}, {0, 4}).to_vector<double>().empty());
  expect_error<ShapeError>("[from] the shape must hold as many elements as there are values: got [4] and 6",
                           [&] { Tensor::from(values, {4}); });
  expect_error<ValueError>("[from] a number for int64 must be whole and fit into 64 bits: got 1.5",
                           [] { Tensor::from({1.5}, {1}, DType::int64); });
  expect_error<ValueError>("[from] a number for bool must be 0 or 1: got 2",
                           [] { Tensor::from({2}, {1}, DType::boolean); });
  expect_error<ValueError>("[data] the type must be the tensor's float32: got float64", [&] { x.data<double>(); });
  expect_error<ValueError>("[data] the type must be the tensor's float32: got int64", [&] { x.to_vector<int64_t>(); });
}

TEST(Copy, ItemConverts) {
  EXPECT_EQ(Tensor::scalar(2.5).item(), 2.5);
  EXPECT_EQ(Tensor::scalar(-2.5).item<int64_t>(), -2);
  EXPECT_TRUE(Tensor::from({7}, {1, 1}, DType::int64).item<bool>());
  EXPECT_EQ(Tensor::scalar(1, DType::boolean).item<float>(), 1.0F);
  expect_error<ShapeError>("[item] needs a tensor of one element: got shape [2]", [] { zeros({2}).item(); });
  expect_error<ShapeError>("[item] needs a tensor of one element: got shape [0]", [] { zeros({0}).item(); });
  expect_error<ValueError>("[item] int64 holds numbers in [-2^63, 2^63): got nan",
                           [] { Tensor::scalar(std::nan("")).item<int64_t>(); });
}

template <class T>
void large_turned_views_are_copied_right() {
  Rng rng(6);
  const Tensor x = rng.integers({131, 257}, -99, 99).to(dtype_of<T>());
  const Tensor y = x.transpose(0, 1).clone();
  for_each_index(y.shape(), [&](const Dims& i) { ASSERT_EQ(at<T>(y, i), at<T>(x, {i[1], i[0]})); });
  const Tensor many = rng.integers({3, 5, 33, 70}, -99, 99).to(dtype_of<T>());
  const Tensor turned = many.permute({1, 0, 3, 2}), copy = turned.clone(), doubled = copy.to(DType::float64);
  for_each_index(copy.shape(), [&](const Dims& i) { ASSERT_EQ(at<T>(copy, i), at<T>(turned, i)); });
  EXPECT_TRUE(identical(turned.to(DType::float64), doubled));
  Tensor target = zeros(many.shape(), dtype_of<T>());
  target.permute({1, 0, 3, 2}).copy_(copy);  // here the target is turned
  EXPECT_TRUE(identical(target, many));
}

TEST(Copy, LargeTurnedViews) {  // which go tile by tile
  large_turned_views_are_copied_right<float>();
  large_turned_views_are_copied_right<double>();
  large_turned_views_are_copied_right<bool>();
}

template <class To, class From>
void check_conversion(Rng& rng) {
  const Tensor x = scrambled<From>({3, 4, 2}, rng);
  const Tensor y = x.to(dtype_of<To>());
  ASSERT_EQ(y.dtype(), dtype_of<To>());
  for_each_index(x.shape(), [&](const Dims& i) { EXPECT_EQ(at<To>(y, i), static_cast<To>(at<From>(x, i))); });
}

TEST(Copy, ConvertsBetweenAllTypes) {
  Rng rng(5);
  check_conversion<float, double>(rng);
  check_conversion<float, int64_t>(rng);
  check_conversion<float, bool>(rng);
  check_conversion<double, float>(rng);
  check_conversion<double, int64_t>(rng);
  check_conversion<int64_t, float>(rng);
  check_conversion<int64_t, double>(rng);
  check_conversion<int64_t, bool>(rng);
  check_conversion<bool, float>(rng);
  check_conversion<bool, int64_t>(rng);
  EXPECT_EQ(Tensor::from({-2.7, 2.7}, {2}).to(DType::int64).to_vector<int64_t>(), std::vector<int64_t>({-2, 2}));
  EXPECT_EQ(Tensor::from({0.1, 0, NAN}, {3}).to(DType::boolean).to_vector<bool>(),
            std::vector<bool>({true, false, true}));
  const Tensor same = zeros({2});
  EXPECT_EQ(same.to(DType::float32).storage(), same.storage());
  expect_error<ValueError>("[to] int64 holds numbers in [-2^63, 2^63): got float32 values beyond", [] {
    Tensor::from({1, NAN}, {2}).to(DType::int64);
  });
  expect_error<ValueError>("[copy_] int64 holds numbers in [-2^63, 2^63): got float64 values beyond",
                           [] { zeros({2}, DType::int64).copy_(full({1}, 0x1p63, DType::float64)); });
}

TEST(Copy, CloneAndContiguousOfRandomViews) {
  Rng rng(6);
  for (int trial = 0; trial < 100; ++trial) {
    const Tensor x = scrambled<double>(test::random_shape(static_cast<int>(rng.next_integer(0, 6)), rng), rng);
    const Tensor y = x.clone();
    EXPECT_TRUE(y.is_contiguous());
    for_each_index(x.shape(), [&](const Dims& i) { ASSERT_EQ(at<double>(x, i), at<double>(y, i)); });
    EXPECT_TRUE(identical(x, y));
  }
}

TEST(Copy, LargeTensorsAreCopiedWhole) {  // several chunks, in parallel, that begin in the middle of rows
  Rng rng(7);
  const Tensor x = rng.integers({301, 257}, 0, 1000).transpose(0, 1);
  const Tensor y = x.clone();
  for_each_index(x.shape(), [&](const Dims& i) { ASSERT_EQ(at<int64_t>(x, i), at<int64_t>(y, i)); });
}

TEST(Copy, IntoAViewTouchesNothingElse) {
  Tensor x = zeros({4, 5});
  x.slice(0, {.start = 1, .stop = 4, .step = 2}).select(1, 2).copy_(Tensor::from({7, 8}, {2}, DType::float64));
  std::vector<float> expected(20, 0.0F);
  expected[7] = 7;
  expected[17] = 8;
  EXPECT_EQ(x.to_vector<float>(), expected);
  x.copy_(Tensor::scalar(3));
  EXPECT_TRUE(identical(x, full({4, 5}, 3)));
  expect_error<ShapeError>("[copy_] the source must broadcast to the target's shape: got [2, 4, 5] and [4, 5]", [&] {
    x.copy_(zeros({2, 4, 5}));
  });
  expect_error<ShapeError>("[copy_] shapes must be equal or broadcast: got [4, 5] and [3]",
                           [&] { x.copy_(zeros({3})); });
}

TEST(Copy, SafeWhereTheTwoOverlap) {
  Tensor x = arange(8);
  x.slice(0, {.start = 1}).copy_(x.slice(0, {.stop = 7}));
  EXPECT_EQ(x.to_vector<int64_t>(), std::vector<int64_t>({0, 0, 1, 2, 3, 4, 5, 6}));
  Tensor square = arange(9).reshape({3, 3});
  square.copy_(square.transpose(0, 1));
  EXPECT_EQ(square.to_vector<int64_t>(), std::vector<int64_t>({0, 3, 6, 1, 4, 7, 2, 5, 8}));
}

TEST(Copy, FillChecksItsValue) {
  Tensor x = zeros({2, 3}, DType::int64);
  x.select(1, 0).fill_(4);
  EXPECT_EQ(x.to_vector<int64_t>(), std::vector<int64_t>({4, 0, 0, 4, 0, 0}));
  zeros({0, 2}).fill_(1);
  expect_error<ValueError>("[fill_] a number for int64 must be whole and fit into 64 bits: got 0.5",
                           [&] { x.fill_(0.5); });
  expect_error<ValueError>("[fill_] a number for int64 must be whole and fit into 64 bits: got nan",
                           [&] { x.fill_(std::nan("")); });
}

TEST(Copy, EveryInPlaceChangeCountsOnce) {
  Tensor x = zeros({2, 3});
  const uint64_t start = x.version();
  x.fill_(1);
  EXPECT_EQ(x.version(), start + 1);
  x.transpose(0, 1).copy_(zeros({1}));
  EXPECT_EQ(x.version(), start + 2);
  x.mutable_data<float>()[0] = 1;
  EXPECT_EQ(x.version(), start + 3);
  x.data<float>();
  x.clone();
  EXPECT_EQ(x.version(), start + 3);
}

}  // namespace
}  // namespace carousel
