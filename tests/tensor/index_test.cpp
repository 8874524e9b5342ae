#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>
#include <carousel/tensor/runtime.h>

#include "restore_threads.h"
#include "support.h"

namespace carousel {
namespace {

using test::at;
using test::expect_error;
using test::for_each_index;

template <class T>
void rows_are_those_of_the_table() {
  Rng rng(1);
  for (int trial = 0; trial < 40; ++trial) {
    Shape shape = test::random_shape(static_cast<int>(rng.next_integer(1, 4)), rng);
    shape[0] = 5;
    const Tensor table = test::scrambled<T>(shape, rng);
    const Shape leading = test::random_shape(static_cast<int>(rng.next_integer(0, 3)), rng);
    const Tensor index = rng.integers(leading, 0, 5);
    const Tensor rows = take_rows(table, index);
    ASSERT_EQ(rows.rank(), index.rank() + table.rank() - 1);
    for_each_index(rows.shape(), [&](const Dims& place) {
      Dims of_index, of_table;
      for (int i = 0; i < index.rank(); ++i) of_index.push_back(place[i]);
      of_table.push_back(at<int64_t>(index, of_index));
      for (int i = index.rank(); i < place.rank(); ++i) of_table.push_back(place[i]);
      EXPECT_EQ(at<T>(rows, place), at<T>(table, of_table));
    });
  }
}

TEST(Index, TakeRowsPicksRowsOfTheTable) {
  rows_are_those_of_the_table<float>();
  rows_are_those_of_the_table<double>();
  rows_are_those_of_the_table<int64_t>();
  rows_are_those_of_the_table<bool>();
}

TEST(Index, TakeRowsLiesInTheOrderOfTheIndex) {
  Rng rng(2);
  const Tensor table = rng.normal({9, 4});
  const Tensor time_major = rng.integers({7, 3}, 0, 9);  // [T, B]
  const Tensor rows = take_rows(table, time_major.transpose(0, 1));
  EXPECT_EQ(rows.shape(), Shape({3, 7, 4}));
  EXPECT_TRUE(rows.transpose(0, 1).is_contiguous());
  EXPECT_TRUE(identical(rows.transpose(0, 1), take_rows(table, time_major)));
}

template <class T>
void scattering_adds_row_by_row() {
  Rng rng(3);
  for (int trial = 0; trial < 40; ++trial) {
    const Tensor index = test::scrambled<int64_t>(test::random_shape(2, rng), rng);
    Tensor positions = index.clone();
    for (int64_t i = 0; i < positions.numel(); ++i) positions.mutable_data<int64_t>()[i] = (index.numel() * 7 + i) % 4;
    if (trial % 2) positions = positions.transpose(0, 1).contiguous().transpose(0, 1);
    const Tensor source = test::scrambled<T>({index.size(0), index.size(1), 3}, rng);
    const Tensor got = scatter_rows(source, positions, 6);
    Tensor expected = zeros({6, 3}, dtype_of<T>());  // small integers: sums are exact in any order
    for_each_index(source.shape(), [&](const Dims& place) {
      expected.mutable_data<T>()[at<int64_t>(positions, {place[0], place[1]}) * 3 + place[2]] += at<T>(source, place);
    });
    EXPECT_TRUE(identical(got, expected));
  }
}

TEST(Index, ScatterRowsAddsRowByRow) {
  scattering_adds_row_by_row<float>();
  scattering_adds_row_by_row<double>();
  scattering_adds_row_by_row<int64_t>();
}

TEST(Index, RowsAreAddedToWhatIsThere) {
  Rng rng(5);
  const Tensor index = rng.integers({4, 5}, 0, 6), source = test::scrambled<float>({4, 5, 3}, rng);
  const Tensor before = test::scrambled<float>({6, 3}, rng);
  Tensor rows = before.clone(), columns = before.transpose(0, 1).contiguous().transpose(0, 1);
  const Tensor expected = before + scatter_rows(source, index, 6);  // small integers: sums are exact in any order
  EXPECT_TRUE(identical(add_rows_(rows, index, source), expected));
  EXPECT_TRUE(identical(add_rows_(columns, index, source), expected));
}

TEST(Index, RowsMayBeAddedToThemselves) {
  Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2});
  add_rows_(x, Tensor::from({1, 1}, {2}, DType::int64), x);
  EXPECT_TRUE(identical(x, Tensor::from({1, 2, 7, 10}, {2, 2})));
}

TEST(Index, ErrorsOfAddedRows) {
  Tensor out = ones({5, 2});
  const Tensor index = Tensor::from({0, 5}, {2}, DType::int64);
  expect_error<IndexError>("[add_rows_] positions must be in [0, 5): got 5 at [1]", [&] {
    add_rows_(out, index, ones({2, 2}));
  });
  expect_error<ShapeError>("[add_rows_] rows must be of the source's last sizes: got [5, 2] and [2, 3], at [2]", [&] {
    add_rows_(out, index, ones({2, 3}));
  });
  expect_error<ShapeError>("[add_rows_] the source's first sizes must be the index's: got [3, 2] and [2]", [&] {
    add_rows_(out, index, ones({3, 2}));
  });
}

TEST(Index, ScatterRowsIsTheSameForAnyThreadCount) {
  Rng rng(4);
  const Tensor index = rng.integers({2000}, 0, 13), source = rng.normal({2000, 500});
  const test::RestoreThreads restore;
  set_threads(1);
  const Tensor one = scatter_rows(source, index, 13);
  set_threads(4);
  EXPECT_TRUE(identical(scatter_rows(source, index, 13), one));
}

TEST(Index, RowsOfNothing) {
  const Tensor nothing({0}, DType::int64);
  EXPECT_EQ(take_rows(ones({3, 2}), nothing).shape(), Shape({0, 2}));
  EXPECT_EQ(take_rows(ones({0, 2}), nothing).shape(), Shape({0, 2}));
  EXPECT_TRUE(identical(scatter_rows(ones({0, 2}), nothing, 3), zeros({3, 2})));
  EXPECT_EQ(take_rows(ones({3}), Tensor::scalar(2, DType::int64)).shape(), Shape({}));
}

TEST(Index, RowErrorsNameThePositionAndTheSize) {
  const Tensor table = ones({5, 2});
  const Tensor index = Tensor::from({0, 1, 2, 3, 5, 4}, {2, 3}, DType::int64);
  expect_error<IndexError>("[take_rows] positions must be in [0, 5): got 5 at [1, 1]",
                           [&] { take_rows(table, index); });
  expect_error<IndexError>("[take_rows] positions must be in [0, 5): got 5 at [1, 1]",
                           [&] { take_rows(table, index.transpose(0, 1)); });
  expect_error<IndexError>("[take_rows] positions must be in [0, 5): got -1 at []",
                           [&] { take_rows(table, Tensor::scalar(-1, DType::int64)); });
  expect_error<ValueError>("[take_rows] the index must be int64: got float32", [&] { take_rows(table, ones({2})); });
  expect_error<ShapeError>("[take_rows] the table must have at least one axis: got []",
                           [&] { take_rows(Tensor::scalar(1), index); });
  expect_error<IndexError>("[scatter_rows] positions must be in [0, 4): got 5 at [1, 1]", [&] {
    scatter_rows(ones({2, 3, 7}), index, 4);
  });
  expect_error<ShapeError>("[scatter_rows] the source's first sizes must be the index's: got [3, 2] and [2, 3]", [&] {
    scatter_rows(ones({3, 2}), index, 9);
  });
  expect_error<ValueError>("[scatter_rows] the number of rows must not be negative: got -1", [&] {
    scatter_rows(ones({2, 3}), index, -1);
  });
}

template <class T>
void picks_are_index_arithmetic() {
  Rng rng(5);
  for (int trial = 0; trial < 60; ++trial) {
    const int rank = static_cast<int>(rng.next_integer(1, 5));
    const int axis = static_cast<int>(rng.next_integer(0, rank));
    Shape shape = test::random_shape(rank, rng), picked = shape;
    for (int i = 0; i < rank; ++i) picked[i] = i == axis ? rng.next_integer(0, 6) : rng.next_integer(0, shape[i] + 1);
    shape[axis] = 3;
    const Tensor x = test::scrambled<T>(shape, rng);
    const Tensor index = rng.integers(picked, 0, 3), source = test::scrambled<T>(picked, rng);
    const Tensor got = gather(x, axis, index), sums = scatter_add(x, axis - rank, index, source);
    Tensor expected = x.clone();
    ASSERT_EQ(got.shape(), picked);
    for_each_index(picked, [&](const Dims& place) {
      Dims from = place;
      from[axis] = at<int64_t>(index, place);
      EXPECT_EQ(at<T>(got, place), at<T>(x, from));
      int64_t offset = 0;
      for (int i = 0; i < rank; ++i) offset += from[i] * expected.strides()[i];
      expected.mutable_data<T>()[offset] += at<T>(source, place);
    });
    EXPECT_TRUE(identical(sums, expected));
  }
}

TEST(Index, GatherAndScatterAddAreIndexArithmetic) {
  picks_are_index_arithmetic<float>();
  picks_are_index_arithmetic<double>();
  picks_are_index_arithmetic<int64_t>();
}

TEST(Index, GatherOfManyElementsIsIndexArithmetic) {  // past one range of the parallel loop
  Rng rng(6);
  const Tensor x = rng.normal({300, 7, 20}), index = rng.integers({300, 9, 20}, 0, 7);
  const test::RestoreThreads restore;
  set_threads(3);
  const Tensor got = gather(x, 1, index);
  int64_t wrong = 0;
  for_each_index(got.shape(), [&](const Dims& place) {
    wrong += at<float>(got, place) != at<float>(x, {place[0], at<int64_t>(index, place), place[2]});
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Index, PickErrors) {
  const Tensor x = ones({2, 3});
  const Tensor index = Tensor::from({0, 2, 3}, {1, 3}, DType::int64);
  expect_error<IndexError>("[gather] positions must be in [0, 3): got 3 at [0, 2]", [&] { gather(x, 1, index); });
  expect_error<IndexError>("[scatter_add] positions must be in [0, 2): got 2 at [0, 1]", [&] {
    scatter_add(x, 0, index, ones({1, 3}));
  });
  expect_error<ShapeError>(
      "[gather] the index must have as many axes and, off axis 1, sizes at most: got [3, 3] for [2, 3]", [&] {
        gather(x, 1, zeros({3, 3}, DType::int64));
      });
  expect_error<ShapeError>(
      "[gather] the index must have as many axes and, off axis 0, sizes at most: got [2] for [2, 3]",
      [&] { gather(x, 0, zeros({2}, DType::int64)); });
  expect_error<ShapeError>("[scatter_add] source and index must have one shape: got [3] and [1, 3]",
                           [&] { scatter_add(x, 0, index, ones({3})); });
  expect_error<ValueError>("[scatter_add] operands must have one dtype: got float32 and float64", [&] {
    scatter_add(x, 1, index, ones({1, 3}, DType::float64));
  });
  expect_error<IndexError>("[gather] axis must be in [-2, 1]: got 2", [&] { gather(x, 2, index); });
  expect_error<ValueError>("[gather] the index must be int64: got bool", [&] {
    gather(x, 0, ones({1, 3}, DType::boolean));
  });
}

TEST(Index, OneHot) {
  const Tensor index = Tensor::from({2, 0}, {2, 1}, DType::int64);
  EXPECT_TRUE(identical(one_hot(index, 3), Tensor::from({0, 0, 1, 1, 0, 0}, {2, 1, 3})));
  EXPECT_EQ(one_hot(index, 3, DType::boolean).dtype(), DType::boolean);
  EXPECT_EQ(one_hot(Tensor({0}, DType::int64), 0).shape(), Shape({0, 0}));
  expect_error<IndexError>("[one_hot] positions must be in [0, 2): got 2 at [0, 0]", [&] { one_hot(index, 2); });
  expect_error<ValueError>("[one_hot] the number of classes must not be negative: got -1", [&] { one_hot(index, -1); });
}

}  // namespace
}  // namespace carousel
