#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/runtime.h>

#include <cmath>

#include "blocks_asked_for.h"
#include "restore_threads.h"
#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;
using test::random_shape;
using test::scrambled;

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
constexpr float inf_f = std::numeric_limits<float>::infinity();

/// Sums over the axes where `goes` is set, one element at a time, in double; the axes stay with size 1.
Tensor plain_sum(const Tensor& x, const std::vector<bool>& goes) {
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) shape[i] = goes[i] ? 1 : shape[i];
  Tensor out = zeros(shape, DType::float64);
  const Tensor wide = x.to(DType::float64);
  double* values = out.mutable_data<double>();
  for_each_index(x.shape(), [&](const Dims& index) {
    int64_t place = 0;
    for (int i = 0; i < x.rank(); ++i) place += goes[i] ? 0 : index[i] * out.strides()[i];
    values[place] += at<double>(wide, index);
  });
  return out;
}

template <class T>
void sums_match_the_plain_loop() {
  Rng rng(1);
  for (int trial = 0; trial < 150; ++trial) {
    const int rank = static_cast<int>(rng.next_integer(0, 5));
    const Tensor x = scrambled<T>(random_shape(rank, rng), rng);
    std::vector<bool> goes;
    Dims axes;
    for (int i = 0; i < rank; ++i) {
      goes.push_back(rng.next_integer(0, 2) == 1);
      if (goes.back()) axes.push_back(rng.next_integer(0, 2) == 1 ? i : i - rank);
    }
    const Tensor expected = plain_sum(x, goes);  // small integers: every right sum is exact
    const Tensor kept = sum(x, axes, keep_axes);
    EXPECT_TRUE(identical(kept.to(DType::float64), expected)) << to_string(x.shape()) << to_string(axes);
    EXPECT_TRUE(identical(sum(x, axes), kept.reshape(sum(x, axes).shape())));
    EXPECT_EQ(sum(x, axes).rank(), rank - axes.rank());
  }
}

TEST(Reduce, SumOverAnyAxesOfAnyViewMatchesThePlainLoop) {
  sums_match_the_plain_loop<float>();
  sums_match_the_plain_loop<double>();
  sums_match_the_plain_loop<int64_t>();
}

TEST(Reduce, LongRowsColumnsAndMiddlesMatchThePlainLoop) {  // past the blocks of the kernel
  Rng rng(2);
  const Tensor x = rng.integers({2, 700, 270}, -50, 50).to(DType::float32);
  const auto expect_sum = [](const Tensor& y, const Dims& axes, const std::vector<bool>& goes) {
    EXPECT_TRUE(identical(sum(y, axes, keep_axes).to(DType::float64), plain_sum(y, goes))) << to_string(axes);
  };
  expect_sum(x, {0, 1}, {true, true, false});
  expect_sum(x, {1}, {false, true, false});
  expect_sum(x, {1, 2}, {false, true, true});
  expect_sum(x, {0, 2}, {true, false, true});
  expect_sum(x.transpose(0, 1), {0, 1}, {true, true, false});
  expect_sum(x.transpose(1, 2), {1}, {false, true, false});
  EXPECT_EQ(sum(x).item(), plain_sum(x, {true, true, true}).item());
}

TEST(Reduce, ViewsThatMergeAreNotCopied) {
  const Tensor x = ones({6, 7, 8});
  const Tensor time_major = x.transpose(0, 1);
  const auto blocks = [](const Tensor& y, const Dims& axes) {
    const uint64_t before = test::blocks_asked_for();
    sum(y, axes);
    return test::blocks_asked_for() - before;
  };
  EXPECT_EQ(blocks(time_major, {0, 1}), 1u);  // a bias gradient
  EXPECT_EQ(blocks(x, {0, 1}), 1u);
  EXPECT_EQ(blocks(time_major, {1}), 1u);
  EXPECT_EQ(blocks(time_major, {2}), 1u);
  EXPECT_EQ(blocks(x.transpose(1, 2), {0}), 1u);
  EXPECT_EQ(blocks(x.slice(2, {.stop = 5}), {1}), 1u);
  EXPECT_EQ(blocks(x, {0, 2}), 2u);
}

TEST(Reduce, AnExpandedViewCountsEveryCopy) {
  const Tensor x = Tensor::from({1, 2, 3}, {3, 1}).expand({3, 1000});
  EXPECT_EQ(sum(x).item(), 6000);
  EXPECT_EQ(sum(x, {1}).to_vector<float>(), (std::vector<float>{1000, 2000, 3000}));
}

TEST(Reduce, FloatSumsDoNotDrift) {  // HD-36 b, c
  const Tensor symmetric = (arange(4096000).to(DType::float64) - 2047999.5).to(DType::float32);
  const Tensor tenths = full({1392640}, 0.1);
  const test::RestoreThreads restore;
  for (const int count : {1, 2, 6}) {
    set_threads(count);
    for (int repeat = 0; repeat < 20; ++repeat) {
      EXPECT_EQ(sum(symmetric).item(), 0);
      EXPECT_EQ(sum(tenths).item(), sum(full({1392640}, 0.1)).item());
    }
    EXPECT_NEAR(sum(symmetric.reshape({4096, 1000}), {0, 1}).item(), 0, 1);
    EXPECT_NEAR(sum(tenths).item(), 139264.0, 0.1);
    EXPECT_NEAR(sum(tenths.reshape({1392640, 1}).expand({1392640, 2}), {0}).data<float>()[1], 139264.0, 0.1);
    EXPECT_NEAR(mean(tenths).item(), 0.1, 1e-8);  // half a unit in the last place of 0.1f is 3.7e-9
  }
}

TEST(Reduce, TheThreadCountChangesNoBit) {
  Rng rng(3);
  const Tensor x = rng.normal({3000, 133});
  const test::RestoreThreads restore;
  std::vector<Tensor> results;
  for (int count : {1, 2, 6}) {
    set_threads(count);
    results.push_back(sum(x));
    results.push_back(sum(x, {0}));
    results.push_back(sum(x, {1}));
    results.push_back(Tensor::scalar(norm(x), DType::float64));
  }
  for (size_t i = 4; i < results.size(); ++i) EXPECT_TRUE(identical(results[i], results[i % 4])) << i;
}

TEST(Reduce, MeanDividesBeforeRounding) {
  EXPECT_EQ(mean(Tensor::from({3e38, 3e38}, {2})).item<float>(), 3e38f);  // the sum would overflow
  EXPECT_EQ(mean(Tensor::from({1, 2, 3, 4, 5, 9}, {2, 3}), {-1}).to_vector<float>(), (std::vector<float>{2, 6}));
  expect_error<ValueError>("[mean] needs float32 or float64: got int64", [] { mean(arange(3)); });
}

TEST(Reduce, EmptyTensors) {  // HD-07
  const Tensor x({0, 3});
  for (int repeat = 0; repeat < 20; ++repeat) {
    EXPECT_EQ(sum(x).item(), 0);
    EXPECT_EQ(sum(x, {0}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
    EXPECT_TRUE(std::isnan(mean(x).item()));
    EXPECT_TRUE(std::isnan(mean(x, {0}).data<float>()[2]));
    EXPECT_EQ(max(x, 1).shape(), Shape({0}));
    EXPECT_EQ(argmax(x, 1).shape(), Shape({0}));
    EXPECT_EQ(max(Tensor({2, 0}), 0).shape(), Shape({0}));
  }
  EXPECT_EQ(norm(x), 0);
  expect_error<ShapeError>("[max] axis 0 must not be empty: got [0, 3]", [&] { max(x); });
  expect_error<ShapeError>("[max] axis 0 must not be empty: got [0, 3]", [&] { max(x, 0); });
  expect_error<ShapeError>("[min] axis 1 must not be empty: got [2, 0]", [] { min(Tensor({2, 0}), -1); });
  expect_error<ShapeError>("[argmax] axis 0 must not be empty: got [0, 3]", [&] { argmax(x); });
  expect_error<ShapeError>("[argmin] axis 0 must not be empty: got [0, 3]", [&] { argmin(x, 0); });
}

TEST(Reduce, AxesAreChecked) {
  const Tensor x = ones({2, 3});
  EXPECT_TRUE(identical(sum(x, {-1}), sum(x, {1})));
  EXPECT_TRUE(identical(sum(x, {-2}), sum(x, {0})));
  expect_error<IndexError>("[sum] axis must be in [-2, 1]: got 2", [&] { sum(x, {2}); });
  expect_error<IndexError>("[sum] axis must be in [-2, 1]: got -3", [&] { sum(x, {-3}); });
  expect_error<ValueError>("[sum] no axis may be named twice: got axes [1, -1] for [2, 3]", [&] { sum(x, {1, -1}); });
  expect_error<ValueError>("[sum] needs numbers: got bool", [] { sum(ones({2}, DType::boolean)); });
  expect_error<ValueError>("[sum] needs a tensor: got an undefined one", [] { sum(Tensor()); });
}

TEST(Reduce, NoAxesCopyTheTensor) {
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2});
  const Tensor y = sum(x, {});
  EXPECT_TRUE(identical(x, y));
  EXPECT_NE(x.storage(), y.storage());
  EXPECT_EQ(sum(Tensor::scalar(3)).item(), 3);
}

template <class T>
void extremes_match_the_plain_loop() {
  Rng rng(4);
  for (int trial = 0; trial < 100; ++trial) {
    Shape shape = random_shape(3, rng);
    const int axis = static_cast<int>(rng.next_integer(0, 3));
    shape[axis] = rng.next_integer(1, 40);
    const Tensor x = scrambled<T>(shape, rng).transpose(axis, 2);
    const Tensor high = max(x, 2), low = min(x, 2), high_at = argmax(x, 2), low_at = argmin(x, 2);
    for_each_index(high.shape(), [&](const Dims& index) {
      Dims place = index;
      place.push_back(0);
      int64_t highest = 0, lowest = 0;
      const auto value = [&](int64_t i) {
        place[2] = i;
        return at<T>(x, place);
      };
      for (int64_t i = 1; i < x.size(2); ++i) {
        if (value(i) > value(highest)) highest = i;
        if (value(i) < value(lowest)) lowest = i;
      }
      EXPECT_EQ(at<T>(high, index), value(highest));
      EXPECT_EQ(at<T>(low, index), value(lowest));
      EXPECT_EQ(at<int64_t>(high_at, index), highest);
      EXPECT_EQ(at<int64_t>(low_at, index), lowest);
    });
  }
}

TEST(Reduce, ExtremesAndTheirFirstPositionsMatchThePlainLoop) {
  extremes_match_the_plain_loop<float>();
  extremes_match_the_plain_loop<double>();
  extremes_match_the_plain_loop<int64_t>();
}

TEST(Reduce, NaNWinsWhereverItStands) {
  for (int64_t place : {0, 1, 7, 8, 15, 16, 20}) {
    Tensor x = arange(21).to(DType::float32);
    x.mutable_data<float>()[20] = inf_f;
    x.mutable_data<float>()[place] = nan_f;
    EXPECT_TRUE(std::isnan(max(x).item())) << place;
    EXPECT_TRUE(std::isnan(min(x).item())) << place;
    EXPECT_EQ(argmax(x).item<int64_t>(), place);
    EXPECT_EQ(argmin(x, 0).item<int64_t>(), place);
    const Tensor columns = x.unsqueeze(1).expand({21, 3}).clone();
    EXPECT_TRUE(std::isnan(max(columns, 0).data<float>()[2])) << place;
  }
  EXPECT_EQ(max(full({9}, -inf_f)).item<float>(), -inf_f);
  EXPECT_EQ(argmax(full({9}, -inf_f)).item<int64_t>(), 0);
}

TEST(Reduce, ArgmaxOverEverythingCountsInRowMajorOrder) {
  const Tensor x = Tensor::from({1, 7, 3, 7, 0, 2}, {2, 3}).transpose(0, 1);  // [[1, 7], [7, 0], [3, 2]]
  EXPECT_EQ(argmax(x).item<int64_t>(), 1);
  EXPECT_EQ(argmax(x, 0, keep_axes).shape(), Shape({1, 2}));
}

TEST(Reduce, SumToUndoesBroadcasting) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_TRUE(identical(sum_to(x, {3, 1}), full({3, 1}, 8)));
  EXPECT_TRUE(identical(sum_to(x, {4}), full({4}, 6)));
  EXPECT_TRUE(identical(sum_to(x, {1, 3, 4}), full({1, 3, 4}, 2)));
  EXPECT_EQ(sum_to(x, {}).item(), 24);
  EXPECT_EQ(sum_to(x, {2, 3, 4}).storage(), x.storage());
  EXPECT_TRUE(identical(sum_to(ones({0, 3}), {1, 3}), zeros({1, 3})));
  expect_error<ShapeError>("[sum_to] the target must broadcast to the tensor's shape: got [2, 4] and [2, 3, 4]", [&] {
    sum_to(x, {2, 4});
  });
  expect_error<ShapeError>("[sum_to] the target must broadcast to the tensor's shape: got [1, 1, 1, 1] and [2, 3, 4]",
                           [&] {
                             sum_to(x, {1, 1, 1, 1});
                           });
}

TEST(Reduce, NormDoesNotOverflow) {
  EXPECT_NEAR(norm(full({100}, 1e200, DType::float64)) / 1e201, 1, 1e-15);
  EXPECT_EQ(norm(full({2}, INFINITY, DType::float64)), INFINITY);
  EXPECT_NEAR(norm(full({100}, 1e20)) / 1e21, 1, 1e-7);  // 1e20 itself is rounded to 24 bits
  EXPECT_EQ(norm(Tensor::from({3, 0, 4, 0}, {2, 2}).slice(1, {.stop = 1})), 5);
  EXPECT_TRUE(std::isnan(norm(Tensor::from({1, nan_f}, {2}))));
  EXPECT_EQ(sum_of_squares(Tensor::from({1, 2, 3, 4}, {2, 2}, DType::float64).transpose(0, 1)), 30);
  EXPECT_EQ(sum_of_squares(zeros({0})), 0);
  expect_error<ValueError>("[sum_of_squares] needs float32 or float64: got int64", [] { sum_of_squares(arange(2)); });
  expect_error<ValueError>("[norm] needs a tensor: got an undefined one", [] { norm(Tensor()); });
}

}  // namespace
}  // namespace carousel
