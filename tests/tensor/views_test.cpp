#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>

#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;

/// 0, 1, 2, ... in `shape`.
Tensor counting(const Shape& shape) { return arange(numel(shape)).reshape(shape); }

/// The row-major elements of `x`, read one by one through its strides.
std::vector<int64_t> elements(const Tensor& x) {
  std::vector<int64_t> values;
  for_each_index(x.shape(), [&](const Dims& index) { values.push_back(at<int64_t>(x, index)); });
  return values;
}

TEST(Views, SliceIsIndexArithmetic) {
  const Tensor x = counting({4, 10});
  for (int64_t start : {-12, -10, -3, 0, 4, 9, 10, 15}) {
    for (int64_t stop : {-11, -2, 0, 5, 10, 99}) {
      for (int64_t step : {1, 2, 3, 50}) {
        const Tensor y = x.slice(1, {.start = start, .stop = stop, .step = step});
        const int64_t first = std::clamp<int64_t>(start < 0 ? start + 10 : start, 0, 10);
        const int64_t last = std::clamp<int64_t>(stop < 0 ? stop + 10 : stop, 0, 10);
        std::vector<int64_t> expected;
        for (int64_t row = 0; row < 4; ++row) {
          for (int64_t i = first; i < last; i += step) expected.push_back(row * 10 + i);
        }
        EXPECT_EQ(elements(y), expected) << start << ":" << stop << ":" << step;
        EXPECT_EQ(y.storage(), x.storage());
      }
    }
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(elements(x.slice(-1, {.start = 9, .step = most})), std::vector<int64_t>({9, 19, 29, 39}));
  EXPECT_EQ(x.slice(0, {.start = std::numeric_limits<int64_t>::min(), .stop = most}).shape(), x.shape());
  expect_error<ValueError>("[slice] step must be positive: got 0", [&] { x.slice(0, {.step = 0}); });
  expect_error<IndexError>("[slice] axis must be in [-2, 1]: got 2", [&] { x.slice(2, {}); });
}

TEST(Views, SelectDropsAnAxis) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(x.select(1, -1).shape(), Shape({2, 4}));
  EXPECT_EQ(elements(x.select(1, -1)), std::vector<int64_t>({8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(x.select(0, 1).select(0, 1).select(-1, 2).item<int64_t>(), 18);
  expect_error<IndexError>("[select] index must be in [-3, 3) along axis 1: got 3", [&] { x.select(1, 3); });
  expect_error<IndexError>("[select] index must be in [0, 0) along axis 0: got 0", [] { zeros({0}).select(0, 0); });
}

TEST(Views, PermuteMovesAxes) {
  const Tensor x = counting({2, 3, 4});
  const Tensor y = x.permute({2, 0, -2});
  ASSERT_EQ(y.shape(), Shape({4, 2, 3}));
  for_each_index(y.shape(), [&](const Dims& i) { EXPECT_EQ(at<int64_t>(y, i), at<int64_t>(x, {i[1], i[2], i[0]})); });
  EXPECT_EQ(elements(x.transpose(0, -1)), elements(x.permute({2, 1, 0})));
  expect_error<ShapeError>("[permute] needs each axis once: got axes [0, 1, 0] for shape [2, 3, 4]", [&] {
    x.permute({0, 1, 0});
  });
  expect_error<ShapeError>("[permute] needs each axis once: got axes [0, 1] for shape [2, 3, 4]", [&] {
    x.permute({0, 1});
  });
  expect_error<IndexError>("[transpose] axis must be in [-3, 2]: got -4", [&] { x.transpose(-4, 0); });
}

TEST(Views, UnsqueezeAndSqueeze) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(x.unsqueeze(0).shape(), Shape({1, 2, 3}));
  EXPECT_EQ(x.unsqueeze(-1).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(x.unsqueeze(-3).shape(), Shape({1, 2, 3}));
  EXPECT_TRUE(x.unsqueeze(1).is_contiguous());
  EXPECT_EQ(elements(x.unsqueeze(1).squeeze(-2)), elements(x));
  expect_error<ShapeError>("[squeeze] axis 1 must have size 1: got [2, 3]", [&] { x.squeeze(1); });
  expect_error<IndexError>("[unsqueeze] axis must be in [-3, 2]: got 3", [&] { x.unsqueeze(3); });
}

TEST(Views, ExpandRepeatsWithoutCopying) {
  const Tensor x = counting({2, 1});
  const Tensor y = x.expand({3, -1, 4});
  EXPECT_EQ(y.shape(), Shape({3, 2, 4}));
  EXPECT_EQ(y.storage(), x.storage());
  for_each_index(y.shape(), [&](const Dims& i) { EXPECT_EQ(at<int64_t>(y, i), i[1]); });
  EXPECT_EQ(x.expand({2, 0}).numel(), 0);
  expect_error<ShapeError>("[expand] only axes of size 1 grow: got [3, 1] for [2, 1]", [&] { x.expand({3, 1}); });
  expect_error<ShapeError>("[expand] cannot drop axes: got [2] for [2, 1]", [&] { x.expand({2}); });
  expect_error<ShapeError>("[shape] sizes must not be negative: got [-1, 2, 1]", [&] { x.expand({-1, 2, 1}); });
  expect_error<ShapeError>("[shape] the number of elements must fit into 63 bits: got [4611686018427387904, 2, 1]",
                           [&] {
                             x.expand({1LL << 62, 2, 1});
                           });
}

TEST(Views, ReshapeKeepsTheOrderAndViewsWhereItCan) {
  const Tensor x = counting({4, 6});
  EXPECT_EQ(elements(x.reshape({2, -1, 3})), elements(x));
  EXPECT_EQ(x.reshape({2, -1, 3}).storage(), x.storage());
  EXPECT_TRUE(x.transpose(0, 1).view({2, 3, 4}).has_value());   // cuts an axis
  EXPECT_FALSE(x.transpose(0, 1).view({24}).has_value());       // would join two that are not one run
  EXPECT_TRUE(x.slice(1, {.step = 2}).view({12}).has_value());  // evenly spaced: 0, 2, 4, | 6, ...
  EXPECT_FALSE(x.slice(1, {.stop = 4}).view({16}).has_value());
  EXPECT_EQ(elements(x.transpose(0, 1).reshape({24})), elements(x.transpose(0, 1)));
  EXPECT_EQ(counting({1}).reshape({}).rank(), 0);
  EXPECT_EQ(zeros({0, 3}).reshape({5, 0}).shape(), Shape({5, 0}));
  expect_error<ShapeError>("[reshape] the number of elements must stay the same: got [5, -1] for [4, 6]", [&] {
    x.reshape({5, -1});
  });
  expect_error<ShapeError>("[reshape] at most one size may be -1: got [-1, -1]", [&] { x.reshape({-1, -1}); });
  expect_error<ShapeError>("[reshape] the number of elements must stay the same: got [0, -1] for [0]", [] {
    zeros({0}).reshape({0, -1});
  });
}

// Any chain of views, then a reshape: the elements in row-major order never change, and a view is given exactly when
// evenly spaced strides exist.
TEST(Views, ReshapeOfRandomViews) {
  Rng rng(3);
  int views = 0, copies = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const Shape shape = test::random_shape(static_cast<int>(rng.next_integer(1, 5)), rng);
    Tensor x = rng.next_integer(0, 2) ? counting(shape) : test::scrambled<int64_t>(shape, rng);
    if (x.rank() > 1 && rng.next_integer(0, 2)) x = x.transpose(0, -1);
    if (x.rank() > 1) x = x.slice(1, {.stop = rng.next_integer(1, 6), .step = rng.next_integer(1, 3)});
    const std::vector<int64_t> expected = elements(x);
    const auto same = [&](const Shape& to) {
      const std::optional<Tensor> view = x.view(to);
      (view ? views : copies) += 1;
      if (view) {
        EXPECT_EQ(elements(*view), expected) << to_string(x.shape()) << to_string(x.strides());
      }
      EXPECT_EQ(elements(x.reshape(to)), expected);
    };
    same({x.numel()});
    same({1, x.numel(), 1});
    same(x.shape());
    for (int64_t divisor : {2, 3, 4}) {
      if (x.numel() % divisor == 0) same({divisor, x.numel() / divisor});
    }
  }
  EXPECT_GT(views, 100);
  EXPECT_GT(copies, 100);
}

TEST(Views, ContiguityIgnoresAxesOfSizeOne) {
  const Tensor x = counting({3, 1, 4});
  EXPECT_TRUE(x.transpose(0, 1).is_contiguous());
  EXPECT_FALSE(x.transpose(0, 2).is_contiguous());
  EXPECT_TRUE(zeros({3, 0}).transpose(0, 1).is_contiguous());
  EXPECT_TRUE(Tensor::scalar(1).is_contiguous());
  EXPECT_EQ(x.contiguous().storage(), x.storage());
  EXPECT_NE(x.clone().storage(), x.storage());
}

TEST(Views, OfAnUndefinedTensorAreErrors) {
  const Tensor nothing;
  EXPECT_FALSE(nothing.defined());
  expect_error<ValueError>("[view] needs a tensor: got an undefined one", [&] { nothing.unsqueeze(0); });
  expect_error<ValueError>("[clone] needs a tensor: got an undefined one", [&] { nothing.clone(); });
  expect_error<ValueError>("[data] needs a tensor: got an undefined one", [&] { nothing.data<float>(); });
}

}  // namespace
}  // namespace carousel
