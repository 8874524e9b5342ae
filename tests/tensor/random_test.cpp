#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/random.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <cmath>

#include "support.h"

namespace carousel {
namespace {

using test::expect_error;
using Words4 = std::array<uint32_t, 4>;

/// Mean, variance and fourth central moment, plainly.
struct Moments {
  double mean = 0, variance = 0, fourth = 0;
};

template <class T>
Moments moments(const Tensor& x) {
  const std::vector<T> values = x.to_vector<T>();
  const auto n = static_cast<double>(values.size());
  Moments m;
  for (T v : values) m.mean += v / n;
  for (T v : values) m.variance += std::pow(v - m.mean, 2) / n;
  for (T v : values) m.fourth += std::pow(v - m.mean, 4) / n;
  return m;
}

/// Pearson's statistic of counts that should be equal.
double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) sum += std::pow(counts[i] - expected[i], 2) / expected[i];
  return sum;
}

/// Five standard deviations above the mean of a chi-square distribution: by chance once in some 100,000 seeds.
double chi_square_bound(double freedom) { return freedom + 5 * std::sqrt(2 * freedom); }

TEST(Random, PhiloxKnownAnswers) {  // from the Random123 distribution, kat_vectors, philox 4x32 10
  EXPECT_EQ(kernels::philox({0, 0, 0, 0}, {0, 0}), Words4({0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(kernels::philox({ones, ones, ones, ones}, {ones, ones}),
            Words4({0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(kernels::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            Words4({0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BlockIsPhiloxOfSeedAndCounter) {
  EXPECT_EQ(Rng::block(0x0123456789abcdef, 0xfedcba9876543210),
            kernels::philox({0x76543210, 0xfedcba98, 0, 0}, {0x89abcdef, 0x01234567}));
}

TEST(Random, SavedStateContinuesTheStream) {
  Rng rng(42);
  rng.uniform({5});
  rng.next_uniform();
  Rng copy(rng.seed(), rng.counter());
  EXPECT_TRUE(identical(rng.normal({7}), copy.normal({7})));
  EXPECT_EQ(rng.next_u64(), copy.next_u64());
  EXPECT_TRUE(identical(rng.permutation(9), copy.permutation(9)));
  EXPECT_EQ(rng.counter(), copy.counter());
}

TEST(Random, UsesAFixedNumberOfBlocks) {
  Rng rng(1);
  const auto used = [&](auto draw) {
    const uint64_t before = rng.counter();
    draw();
    return rng.counter() - before;
  };
  EXPECT_EQ(used([&] { rng.next_u64(); }), 1U);
  EXPECT_EQ(used([&] { rng.next_integer(0, (1LL << 62) + 1); }), 1U);  // though it may draw again
  EXPECT_EQ(used([&] { rng.uniform({9}); }), 3U);
  EXPECT_EQ(used([&] { rng.uniform({9}, 0, 1, DType::float64); }), 5U);
  EXPECT_EQ(used([&] { rng.normal({9}); }), 5U);
  EXPECT_EQ(used([&] { rng.integers({9}, 0, 10); }), 9U);
  EXPECT_EQ(used([&] { rng.uniform({0}); }), 0U);
}

TEST(Random, NumbersDoNotDependOnTheThreadCount) {
  const int before = threads();
  std::vector<std::vector<Tensor>> results;
  for (int count : {1, 3}) {
    set_threads(count);
    Rng rng(2);
    results.push_back({rng.uniform({40001}), rng.normal({20001}, 0, 1, DType::float64), rng.integers({9001}, -3, 9)});
  }
  set_threads(before);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical(results[0][i], results[1][i]));
}

TEST(Random, SeedsGiveDifferentStreams) {
  EXPECT_FALSE(identical(Rng(1).uniform({4}), Rng(2).uniform({4})));
  EXPECT_FALSE(identical(Rng(1).uniform({4}), Rng(1, 1).uniform({4})));
}

// Bounds of five standard errors: by chance once in two million seeds.
TEST(Random, UniformMoments) {
  constexpr int64_t n = 100000;
  Rng rng(3);
  for (DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = rng.uniform({n}, -1, 3, dtype).to(DType::float64);
    const Moments m = moments<double>(x);
    EXPECT_NEAR(m.mean, 1, 5 * std::sqrt(16.0 / 12 / n));
    EXPECT_NEAR(m.variance, 16.0 / 12, 5 * std::sqrt((256.0 / 80 - std::pow(16.0 / 12, 2)) / n));
    EXPECT_FALSE(any(less(x, -1)));
    EXPECT_TRUE(all(less(x, 3)));
    std::vector<double> counts(64);
    for (double v : x.to_vector<double>()) ++counts[static_cast<size_t>((v + 1) * 16)];
    EXPECT_LT(chi_square(counts, std::vector<double>(64, n / 64.0)), chi_square_bound(63));
  }
}

TEST(Random, UniformStaysBelowItsUpperBoundAfterRounding) {
  Rng rng(4);
  const Tensor x = rng.uniform({10000}, 1e6, 1e6 + 0.125);  // two floats: most of [low, high) rounds to `high`
  EXPECT_TRUE(all(equal(x, 1e6)) || all(less(x, 1e6 + 0.125)));
  EXPECT_TRUE(identical(rng.uniform({3}, 2, 2), full({3}, 2)));
}

TEST(Random, NormalMoments) {
  constexpr int64_t n = 100000;
  Rng rng(5);
  for (DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = rng.normal({n}, 2, 3, dtype).to(DType::float64);
    const Moments m = moments<double>(x);
    EXPECT_NEAR(m.mean, 2, 5 * 3 / std::sqrt(n));
    EXPECT_NEAR(m.variance, 9, 5 * 9 * std::sqrt(2.0 / n));
    EXPECT_NEAR(m.fourth / (m.variance * m.variance), 3, 5 * std::sqrt(24.0 / n));
    const std::vector<double> values = x.to_vector<double>();
    // Both halves of a pair, and the two against each other.
    double correlation = 0;
    for (size_t i = 0; i < values.size(); i += 2) correlation += (values[i] - 2) * (values[i + 1] - 2) / 9;
    EXPECT_NEAR(correlation / (n / 2), 0, 5 / std::sqrt(n / 2));
    int64_t beyond = 0;
    for (double v : values) beyond += std::abs(v - 2) > 6;
    const double tail = std::erfc(std::sqrt(2.0));  // beyond two deviations
    EXPECT_NEAR(static_cast<double>(beyond), n * tail, 5 * std::sqrt(n * tail));
  }
}

TEST(Random, SinglePrecisionIsDoublePrecisionRounded) {
  EXPECT_TRUE(identical(Rng(6).normal({33}), Rng(6).normal({33}, 0, 1, DType::float64).to(DType::float32)));
}

TEST(Random, IntegersAreEvenAndInRange) {
  constexpr int64_t n = 70000;
  Rng rng(7);
  std::vector<double> counts(7);
  for (int64_t v : rng.integers({n / 7, 7}, -3, 4).to_vector<int64_t>()) {
    ASSERT_TRUE(-3 <= v && v < 4);
    ++counts[static_cast<size_t>(v + 3)];
  }
  EXPECT_LT(chi_square(counts, std::vector<double>(7, n / 7.0)), chi_square_bound(6));
}

TEST(Random, IntegersHaveNoBiasInHugeRanges) {
  // Without rejection, a range of 3/4 2^64 would give multiples of 3 (plus low) twice as often as the others.
  constexpr int64_t n = 30000, low = std::numeric_limits<int64_t>::min(), high = 1LL << 62;
  std::vector<double> counts(3);
  for (int64_t v : Rng(8).integers({n}, low, high).to_vector<int64_t>()) {
    ASSERT_LT(v, high);
    ++counts[(static_cast<uint64_t>(v) - static_cast<uint64_t>(low)) % 3];
  }
  EXPECT_LT(chi_square(counts, std::vector<double>(3, n / 3.0)), chi_square_bound(2));
  EXPECT_EQ(Rng(9).next_integer(5, 6), 5);
  Rng(9).next_integer(low, std::numeric_limits<int64_t>::max());
}

TEST(Random, PermutationHoldsEachOnceAndIsFair) {
  Rng rng(10);
  std::vector<int64_t> sorted = rng.permutation(100).to_vector<int64_t>();
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, arange(100).to_vector<int64_t>());
  EXPECT_EQ(rng.permutation(0).numel(), 0);
  constexpr int trials = 12000;
  std::vector<double> counts(24);  // by the permutation of four
  for (int t = 0; t < trials; ++t) {
    const std::vector<int64_t> p = rng.permutation(4).to_vector<int64_t>();
    size_t rank = 0;
    for (size_t i = 0; i < 4; ++i) {
      rank = rank * (4 - i) + static_cast<size_t>(std::count_if(p.begin() + static_cast<int64_t>(i), p.end(),
                                                                [&](int64_t later) { return later < p[i]; }));
    }
    ++counts[rank];
  }
  EXPECT_LT(chi_square(counts, std::vector<double>(24, trials / 24.0)), chi_square_bound(23));
}

TEST(Random, MultinomialFollowsTheWeights) {
  constexpr int64_t n = 40000;
  Rng rng(11);
  const Tensor weights = Tensor::from({0, 1, 0, 3, 4, 0}, {6});
  const Tensor drawn = rng.multinomial(weights.expand({n / 4, 4, 6}));
  ASSERT_EQ(drawn.shape(), Shape({n / 4, 4}));
  std::vector<double> counts(6);
  for (int64_t v : drawn.to_vector<int64_t>()) ++counts[static_cast<size_t>(v)];
  EXPECT_EQ(counts[0] + counts[2] + counts[5], 0);
  EXPECT_LT(chi_square({counts[1], counts[3], counts[4]}, {n / 8.0, n * 3 / 8.0, n / 2.0}), chi_square_bound(2));
  EXPECT_EQ(rng.multinomial(weights).rank(), 0);
  EXPECT_EQ(rng.multinomial(zeros({0, 3})).numel(), 0);
  // With the smallest of all numbers, the target rounds to 0 or to the whole sum: at both ends nothing of weight 0.
  const Tensor least = Tensor::from({0, 5e-324, 0}, {3}, DType::float64).expand({50, 3});
  EXPECT_TRUE(identical(rng.multinomial(least), full({50}, 1, DType::int64)));
}

TEST(Random, Errors) {
  Rng rng(12);
  expect_error<ValueError>("[next_integer] low must be below high: got 3 and 3", [&] { rng.next_integer(3, 3); });
  expect_error<ValueError>("[integers] low must be below high: got 3 and 2", [&] { rng.integers({2}, 3, 2); });
  expect_error<ValueError>("[uniform] bounds must be finite and low must not exceed high: got 1 and 0",
                           [&] { rng.uniform({2}, 1, 0); });
  expect_error<ValueError>("[normal] mean must be finite, deviation too and not negative: got 0 and -1",
                           [&] { rng.normal({2}, 0, -1); });
  expect_error<ValueError>("[uniform] needs float32 or float64: got int64",
                           [&] { rng.uniform({2}, 0, 1, DType::int64); });
  expect_error<ValueError>("[permutation] count must not be negative: got -1", [&] { rng.permutation(-1); });
  expect_error<ValueError>("[multinomial] weights must be finite and not negative: got -1", [&] {
    rng.multinomial(Tensor::from({2, -1}, {2}));
  });
  expect_error<ValueError>("[multinomial] weights must have a positive, finite sum: got 0",
                           [&] { rng.multinomial(zeros({2})); });
  expect_error<ValueError>("[multinomial] weights must be finite and not negative: got nan",
                           [&] { rng.multinomial(full({2}, NAN)); });
  expect_error<ShapeError>("[multinomial] weights need at least one axis: got shape []",
                           [&] { rng.multinomial(Tensor::scalar(1)); });
}

}  // namespace
}  // namespace carousel
