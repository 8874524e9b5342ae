#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>

#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;

template <class T>
void concatenation_is_index_arithmetic() {
  Rng rng(1);
  for (int trial = 0; trial < 60; ++trial) {
    const int rank = static_cast<int>(rng.next_integer(1, 4));
    const int axis = static_cast<int>(rng.next_integer(0, rank));
    Shape shape = test::random_shape(rank, rng);
    std::vector<Tensor> parts;
    std::vector<int64_t> sizes;
    for (int i = 0; i < 3; ++i) {
      shape[axis] = rng.next_integer(0, 4);
      sizes.push_back(shape[axis]);
      parts.push_back(test::scrambled<T>(shape, rng));
    }
    const Tensor whole = concatenate(parts, trial % 2 ? axis : axis - rank);
    EXPECT_EQ(whole.size(axis), sizes[0] + sizes[1] + sizes[2]);
    for_each_index(whole.shape(), [&](const Dims& index) {
      Dims place = index;
      size_t part = 0;
      while (place[axis] >= sizes[part]) place[axis] -= sizes[part++];
      EXPECT_EQ(at<T>(whole, index), at<T>(parts[part], place));
    });
    const std::vector<Tensor> again = split(whole, sizes, axis);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(identical(again[i], parts[i]));
      EXPECT_EQ(again[i].storage(), whole.storage());
    }
  }
}

TEST(Join, ConcatenateIsIndexArithmeticAndSplitUndoesIt) {
  concatenation_is_index_arithmetic<float>();
  concatenation_is_index_arithmetic<int64_t>();
  concatenation_is_index_arithmetic<bool>();
}

TEST(Join, StackMakesANewAxisAnywhere) {
  Rng rng(2);
  const std::vector<Tensor> parts{test::scrambled<double>({2, 3}, rng), test::scrambled<double>({2, 3}, rng)};
  for (int axis : {0, 1, 2, -1, -3}) {
    const Tensor whole = stack(parts, axis);
    EXPECT_EQ(whole.size(axis), 2);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(identical(whole.select(axis, i), parts[i]));
  }
  const std::vector<Tensor> scalars{Tensor::scalar(1), Tensor::scalar(2)};
  EXPECT_EQ(stack(scalars, 0).to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Join, ConcatenateErrors) {
  const std::vector<Tensor> parts{ones({2, 3}), ones({2, 4}), ones({2, 3}, DType::float64), ones({6})};
  const std::span<const Tensor> all(parts);
  EXPECT_EQ(concatenate(all.subspan(0, 2), 1).shape(), Shape({2, 7}));
  expect_error<ShapeError>("[concatenate] sizes off axis 0 must be equal: got [2, 3] and [2, 4]",
                           [&] { concatenate(all.subspan(0, 2), 0); });
  expect_error<ShapeError>("[concatenate] sizes off axis 1 must be equal: got [2, 3] and [6]", [&] {
    concatenate(std::vector<Tensor>{parts[0], parts[3]}, -1);
  });
  expect_error<ValueError>("[concatenate] operands must have one dtype: got float32 and float64", [&] {
    concatenate(std::vector<Tensor>{parts[0], parts[2]}, 0);
  });
  expect_error<ValueError>("[concatenate] needs at least one part: got none", [&] { concatenate({}, 0); });
  expect_error<IndexError>("[concatenate] axis must be in [-2, 1]: got 2", [&] { concatenate(all.subspan(0, 2), 2); });
}

TEST(Join, StackErrors) {
  const std::vector<Tensor> parts{ones({2, 3}), ones({3, 2})};
  expect_error<ShapeError>("[stack] all parts must have one shape: got [2, 3] and [3, 2]", [&] { stack(parts, 0); });
  expect_error<ValueError>("[stack] needs at least one part: got none", [&] { stack({}, 0); });
  expect_error<IndexError>("[stack] axis must be in [-3, 2]: got 3", [&] { stack(parts, 3); });
}

TEST(Join, SplitErrors) {
  const Tensor x = ones({2, 5});
  const std::vector<int64_t> too_few{2, 2}, too_many{3, 3}, negative{-1, 6};
  expect_error<ShapeError>("[split] sizes must add up to the size of axis 1: got 4 for [2, 5]",
                           [&] { split(x, too_few, 1); });
  expect_error<ShapeError>("[split] sizes must not be negative or exceed the rest of axis 1: got 3 after 3 for [2, 5]",
                           [&] { split(x, too_many, 1); });
  expect_error<ShapeError>("[split] sizes must not be negative or exceed the rest of axis 1: got -1 after 0 for [2, 5]",
                           [&] { split(x, negative, -1); });
}

}  // namespace
}  // namespace carousel
