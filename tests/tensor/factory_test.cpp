#include <carousel/tensor/factory.h>

#include "support.h"

namespace carousel {
namespace {

using test::expect_error;

TEST(Factory, ConstantTensors) {
  EXPECT_EQ(full({2}, 2.5).to_vector<float>(), std::vector<float>({2.5, 2.5}));
  EXPECT_EQ(ones({3}, DType::boolean).to_vector<bool>(), std::vector<bool>(3, true));
  EXPECT_EQ(zeros({}).item(), 0);
  EXPECT_EQ(zeros({2, 0, 3}).numel(), 0);
  const Tensor like = ones_like(zeros({2, 3}, DType::int64).transpose(0, 1));
  EXPECT_EQ(like.shape(), Shape({3, 2}));
  EXPECT_TRUE(like.is_contiguous());
  EXPECT_EQ(like.to_vector<int64_t>(), std::vector<int64_t>(6, 1));
  EXPECT_EQ(zeros_like(like).to_vector<int64_t>(), std::vector<int64_t>(6, 0));
  expect_error<ValueError>("[ones_like] needs a tensor: got an undefined one", [] { ones_like(Tensor()); });
}

TEST(Factory, AVectorAloneMakesAnAxis) {
  EXPECT_EQ(Tensor::from(std::vector<int64_t>{3, 1, 2}).shape(), Shape({3}));
  EXPECT_EQ(Tensor::from(std::vector<bool>{true, false, true}).to_vector<bool>(),
            std::vector<bool>({true, false, true}));
  EXPECT_EQ(Tensor::from(std::vector<float>{}).shape(), Shape({0}));
}

TEST(Factory, Ranges) {
  EXPECT_EQ(arange(4).to_vector<int64_t>(), std::vector<int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(arange(3, DType::float64).to_vector<double>(), std::vector<double>({0, 1, 2}));
  EXPECT_EQ(arange(0).numel(), 0);
  EXPECT_EQ(linspace(1, 2, 5, DType::float64).to_vector<double>(), std::vector<double>({1, 1.25, 1.5, 1.75, 2}));
  EXPECT_EQ(linspace(3, 9, 1).to_vector<float>(), std::vector<float>({3}));
  EXPECT_EQ(linspace(0, 0.7, 11, DType::float64).to_vector<double>().back(), 0.7);  // exactly
  expect_error<ValueError>("[arange] count must not be negative: got -1", [] { arange(-1); });
  expect_error<ValueError>("[linspace] count must not be negative: got -2", [] { linspace(0, 1, -2); });
  expect_error<ValueError>("[arange] needs numbers: got bool", [] { arange(2, DType::boolean); });
  expect_error<ValueError>("[linspace] needs float32 or float64: got int64", [] { linspace(0, 1, 2, DType::int64); });
}

TEST(Factory, Matrices) {
  EXPECT_EQ(eye(3).to_vector<float>(), std::vector<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(eye(0).numel(), 0);
  for (int64_t k : {INT64_MIN, int64_t{-5}, int64_t{-1}, int64_t{0}, int64_t{2}, int64_t{9}, INT64_MAX}) {
    const std::vector<bool> mask = lower_triangle(3, 4, k).to_vector<bool>();
    for (int64_t i = 0; i < 12; ++i) {
      // column <= row + k, without the sum, which may overflow
      EXPECT_EQ(mask[static_cast<size_t>(i)], i % 4 - i / 4 <= k) << i << " " << k;
    }
  }
}

}  // namespace
}  // namespace carousel
