#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/matmul.h>
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
using test::scrambled;

/// sum over k of a[.., m, k] b[.., k, n], element by element through the strides.
template <class T>
Tensor plain_matmul(const Tensor& a, const Tensor& b, const Shape& shape) {
  Tensor out(shape, dtype_of<T>());
  T* next = out.mutable_data<T>();
  for_each_index(shape, [&](const Dims& index) {
    Dims of_a = index, of_b = index;
    T total = 0;
    for (int64_t k = 0; k < a.size(-1); ++k) {
      of_a[index.rank() - 1] = of_b[index.rank() - 2] = k;
      total += at<T>(a, of_a) * at<T>(b, of_b);
    }
    *next++ = total;
  });
  return out;
}

/// Leading sizes of which some are 1, and sometimes fewer of them.
Shape operand_shape(const Shape& leading, int64_t rows, int64_t columns, Rng& rng) {
  Shape shape;
  const int64_t dropped = rng.next_integer(0, leading.rank() + 1);
  for (int i = static_cast<int>(dropped); i < leading.rank(); ++i) {
    shape.push_back(rng.next_integer(0, 3) == 0 ? 1 : leading[i]);
  }
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

template <class T>
void random_views_match_the_plain_loop() {
  Rng rng(1);
  for (int trial = 0; trial < 250; ++trial) {
    const Shape leading = test::random_shape(static_cast<int>(rng.next_integer(0, 3)), rng);
    const int64_t m = rng.next_integer(0, 9), k = rng.next_integer(0, 9), n = rng.next_integer(0, 9);
    const Tensor a = scrambled<T>(operand_shape(leading, m, k, rng), rng);
    const Tensor b = scrambled<T>(operand_shape(leading, k, n, rng), rng);
    Shape shape = broadcast_shapes("test", Shape(std::span(a.shape().begin(), a.shape().end() - 2)),
                                   Shape(std::span(b.shape().begin(), b.shape().end() - 2)));
    shape.push_back(m);
    shape.push_back(n);
    const Tensor got = matmul(a, b);
    ASSERT_EQ(got.shape(), shape);
    // Small integers: every right product is exact.
    EXPECT_TRUE(identical(got, plain_matmul<T>(a, b, shape))) << to_string(a.shape()) << to_string(b.shape());
  }
}

TEST(Matmul, RandomViewsMatchThePlainLoop) {
  random_views_match_the_plain_loop<float>();
  random_views_match_the_plain_loop<double>();
}

TEST(Matmul, RowAndColumnMajorViewsAreNotCopied) {
  Rng rng(2);
  const Tensor wide = rng.integers({3, 40, 50}, -9, 9).to(DType::float32);
  const Tensor matrix = wide.select(0, 1);
  const Tensor views[] = {matrix,
                          matrix.transpose(0, 1),
                          matrix.slice(0, {.start = 3, .stop = 20}),
                          matrix.slice(1, {.start = 3, .stop = 20}),
                          matrix.slice(1, {.start = 3, .stop = 20}).transpose(0, 1),
                          matrix.slice(0, {.step = 3}),
                          matrix.slice(1, {.start = 7, .stop = 8}),
                          matrix.slice(0, {.start = 7, .stop = 8}),
                          wide.slice(1, {.stop = 30}),
                          wide.slice(2, {.stop = 30}),
                          wide.slice(2, {.stop = 30}).transpose(1, 2),
                          wide.transpose(0, 1),
                          wide.slice(1, {.stop = 1}).expand({3, 5, 50}).slice(1, {.stop = 1})};
  for (const Tensor& a : views) {
    const Tensor b = rng.integers({a.size(-1), 6}, -9, 9).to(DType::float32);
    Shape shape = a.shape();
    shape[a.rank() - 1] = 6;
    const uint64_t before = test::blocks_asked_for();
    const Tensor got = matmul(a, b);
    EXPECT_EQ(test::blocks_asked_for() - before, 1u) << to_string(a.shape()) << to_string(a.strides());
    EXPECT_TRUE(identical(got, plain_matmul<float>(a, b, shape)));
  }
}

TEST(Matmul, OtherViewsAreCopied) {
  Rng rng(3);
  const Tensor x = rng.integers({12, 12}, -9, 9).to(DType::float64);
  const Tensor hankel(x.storage(), 0, {4, 5}, {1, 1}, DType::float64);  // rows overlap
  for (const Tensor& a : {x.slice(0, {.step = 2}).slice(1, {.step = 3}), x.slice(0, {.stop = 1}).expand({5, 12}),
                          x.slice(1, {.stop = 1}).expand({12, 5}), hankel}) {
    const Tensor b = rng.integers({a.size(1), 3}, -9, 9).to(DType::float64);
    EXPECT_TRUE(identical(matmul(a, b), plain_matmul<double>(a, b, {a.size(0), 3})));
  }
}

TEST(Matmul, ATimeMajorViewStaysOne) {
  Rng rng(4);
  const Tensor x = rng.integers({7, 5, 6}, -9, 9).to(DType::float32).transpose(0, 1);  // [B, T, D], time-major
  const Tensor w = rng.integers({4, 6}, -9, 9).to(DType::float32).transpose(0, 1);
  const Tensor y = matmul(x, w);
  EXPECT_TRUE(identical(y, plain_matmul<float>(x, w, {5, 7, 4})));
  EXPECT_EQ(y.strides(), Dims({4, 20, 1}));
}

TEST(Matmul, AProductIsAddedToWhatIsThere) {
  Rng rng(9);
  for (const auto& [m, k, n] : {std::tuple{3, 5, 4}, {2, 0, 3}, {0, 2, 3}, {130, 90, 110}}) {
    const Tensor a = scrambled<double>({m, k}, rng), b = scrambled<double>({k, n}, rng);
    Tensor sum = rng.integers({m, n}, -9, 9).to(DType::float64);
    const Tensor expected = sum + matmul(a, b);  // small integers: sums are exact in any order
    EXPECT_TRUE(identical(add_matmul_(sum, a, b), expected));
  }
}

TEST(Matmul, ErrorsOfAnAddedProduct) {
  Tensor sum = ones({2, 2}), turned = ones({2, 2}).transpose(0, 1);
  expect_error<ShapeError>(
      "[add_matmul_] the product of two matrices must have the shape of the sum: got [2, 3] and [3, 1] for [2, 2]",
      [&] {
        add_matmul_(sum, ones({2, 3}), ones({3, 1}));
      });
  expect_error<ValueError>("[add_matmul_] the sum must be row-major and in memory of its own: got strides [1, 2]", [&] {
    add_matmul_(turned, ones({2, 3}), ones({3, 2}));
  });
  expect_error<ValueError>("[add_matmul_] the sum must be row-major and in memory of its own: got strides [2, 1]", [&] {
    add_matmul_(sum, sum, ones({2, 2}));
  });
}

TEST(Matmul, EmptyProducts) {
  EXPECT_TRUE(identical(matmul(Tensor({2, 0}), Tensor({0, 3})), zeros({2, 3})));
  EXPECT_TRUE(identical(matmul(Tensor({4, 2, 0}), Tensor({0, 3})), zeros({4, 2, 3})));
  EXPECT_EQ(matmul(Tensor({0, 2}), Tensor({2, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ(matmul(Tensor({5, 0, 2}), Tensor({2, 3})).shape(), Shape({5, 0, 3}));
  EXPECT_EQ(matmul(Tensor({0, 4, 2}), Tensor({1, 2, 3})).shape(), Shape({0, 4, 3}));
}

TEST(Matmul, Errors) {
  expect_error<ShapeError>("[matmul] inner sizes must match: got [4, 3] and [5, 2]", [] {
    matmul(ones({4, 3}), ones({5, 2}));
  });
  expect_error<ShapeError>("[matmul] operands must have at least two axes: got [3] and [3, 2]", [] {
    matmul(ones({3}), ones({3, 2}));
  });
  expect_error<ShapeError>("[matmul] leading sizes must be equal or broadcast: got [2, 1, 3] and [4, 3, 1]", [] {
    matmul(ones({2, 1, 3}), ones({4, 3, 1}));
  });
  expect_error<ValueError>("[matmul] operands must have one dtype: got float32 and float64", [] {
    matmul(ones({2, 2}), ones({2, 2}, DType::float64));
  });
  expect_error<ValueError>("[matmul] needs float32 or float64: got int64", [] {
    matmul(ones({2, 2}, DType::int64), ones({2, 2}, DType::int64));
  });
  expect_error<ValueError>("[matmul] needs a tensor: got an undefined one", [] { matmul(Tensor(), ones({2, 2})); });
}

TEST(Matmul, NaNAndInfinityPassThrough) {
  Tensor a = zeros({20, 20});
  a.mutable_data<float>()[5] = std::numeric_limits<float>::infinity();
  const Tensor y = matmul(a, zeros({20, 20}));
  EXPECT_TRUE(std::isnan(y.data<float>()[3]));  // inf * 0
  EXPECT_EQ(y.data<float>()[20], 0);
}

TEST(Matmul, ThreadCountsAgree) {  // HD-36 a
  Rng rng(6);
  const Tensor x = rng.uniform({1, 56}, -1, 1), w = rng.uniform({444, 56}, -0.14, 0.14);
  const Tensor many = rng.normal({64, 10, 12});
  const test::RestoreThreads restore;
  set_threads(1);
  const Tensor one = matmul(x, w.transpose(0, 1)), one_batch = matmul(many, many.transpose(1, 2));
  for (int count : {1, 2, 6}) {
    set_threads(count);
    const Tensor first = matmul(x, w.transpose(0, 1));
    EXPECT_TRUE(all_close(first, one, 0, 1e-6));
    for (int repeat = 0; repeat < 20; ++repeat) {
      EXPECT_TRUE(identical(matmul(x, w.transpose(0, 1)), first));
      EXPECT_TRUE(identical(matmul(many, many.transpose(1, 2)), one_batch));
    }
  }
}

template <class T>
void gemm_matches_plain() {
  Rng rng(7);
  const auto integers = [&](int64_t count) {
    return rng.integers({count}, -9, 9).to(dtype_of<T>()).template to_vector<T>();
  };
  for (int trial = 0; trial < 100; ++trial) {
    const bool trans_a = trial % 2, trans_b = trial / 2 % 2;
    const int64_t m = rng.next_integer(1, 12), n = rng.next_integer(1, 12), k = rng.next_integer(0, 12);
    const int64_t lda = (trans_a ? m : k) + 2, ldb = (trans_b ? k : n) + 1, ldc = n + 3;
    const std::vector<T> a = integers(12 * 14), b = integers(12 * 13), c = integers(12 * 15);
    const T beta = trial % 3 == 0 ? 0 : 2;
    std::vector<T> expected = c, whole = c, pieces = c;
    kernels::gemm_plain<T>(trans_a, trans_b, m, n, k, 3, a.data(), lda, b.data(), ldb, beta, expected.data(), ldc);
    kernels::gemm<T>(trans_a, trans_b, m, n, k, 3, a.data(), lda, b.data(), ldb, beta, whole.data(), ldc);
    EXPECT_EQ(whole, expected);
    if (k == 0) continue;
    kernels::gemm_in_pieces<T>(5, trans_a, trans_b, m, n, k, 3, a.data(), lda, b.data(), ldb, beta, pieces.data(), ldc);
    EXPECT_EQ(pieces, expected);
  }
}

TEST(Linear, TakesMatricesAlone) {
  test::expect_error<ShapeError>("[linear] x and weight must be matrices: got [2, 3, 4] and [5, 4]", [] {
    linear(ones({2, 3, 4}), ones({5, 4}), {});
  });
}

TEST(Gemm, MatchesPlainAlsoInPieces) {
  gemm_matches_plain<float>();
  gemm_matches_plain<double>();
}

TEST(Gemm, PlainMatchesAProductByHand) {  // [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]
  const std::vector<double> a{1, 2, 3, 4}, b{5, 6, 7, 8};
  std::vector<double> c{100, 100, 100, 100};
  kernels::gemm_plain<double>(false, false, 2, 2, 2, 1, a.data(), 2, b.data(), 2, 0, c.data(), 2);
  EXPECT_EQ(c, (std::vector<double>{19, 22, 43, 50}));
  kernels::gemm_plain<double>(true, false, 2, 2, 2, 2, a.data(), 2, b.data(), 2, 1, c.data(), 2);
  EXPECT_EQ(c, (std::vector<double>{19 + 52, 22 + 60, 43 + 76, 50 + 88}));
}

TEST(Gemm, BetaZeroOverwritesNaN) {
  const std::vector<float> a(100, 1), b(100, 1);
  for (int64_t k : {0, 1, 10}) {
    std::vector<float> c(100, std::numeric_limits<float>::quiet_NaN());
    kernels::gemm<float>(false, false, 10, 10, k, 1, a.data(), 10, b.data(), 10, 0, c.data(), 10);
    EXPECT_EQ(c, std::vector<float>(100, static_cast<float>(k)));
  }
}

TEST(Gemm, RowsFartherApartThan31BitsCanSay) {
  const float a = 2, b = 3;
  float c = 1;
  kernels::gemm<float>(false, false, 1, 1, 1, 1, &a, int64_t{1} << 40, &b, 1, 1, &c, 1);
  EXPECT_EQ(c, 7);
}

}  // namespace
}  // namespace carousel
