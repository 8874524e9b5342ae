#include "kernels_common.h"

#include <carousel/tensor/kernels/attention.h>

#include <algorithm>
#include <memory>

namespace carousel::kernels {
namespace {

template <class T>
class Attention : public ForFloats<T> {};
TYPED_TEST_SUITE(Attention, Floats);

enum class Mask { none, first, row, pairs, everything };

struct Sizes {
  int64_t batch, heads, queries, keys, width;
};

/// Queries, keys and values that lie in one array [B, steps, 3, A, hd], as a layer makes them, and masks.
template <class T>
struct Case {
  Case(const Sizes& s, bool causal, Mask mask)
      : shape{s.batch, s.heads, s.queries, s.keys, s.width, 1 / std::sqrt(static_cast<double>(s.width)), causal},
        steps(std::max(s.queries, s.keys)),
        qkv(random_numbers<T>(s.batch * steps * 3 * s.heads * s.width, 1)),
        dy(random_numbers<T>(s.batch * s.heads * s.queries * s.width, 2)),
        visible(new bool[s.batch * s.queries * s.keys]) {
    for (int64_t i = 0; i < s.batch * s.queries; ++i) first.push_back(i * 7 % 11 * s.keys / 12);
    for (int64_t i = 0; i < s.batch * s.queries * s.keys; ++i) visible[i] = i % 5 != 2 && i / s.keys % 6 != 1;
    if (mask == Mask::first || mask == Mask::everything) shape.first = first.data();
    if (mask == Mask::row || mask == Mask::pairs || mask == Mask::everything) shape.visible = visible.get();
    shape.visible_query = mask == Mask::row ? 0 : s.keys;
    shape.visible_row = mask == Mask::row ? s.keys : s.queries * s.keys;
  }

  Heads<const T> input(int64_t which) const {
    const int64_t size = shape.heads * shape.width;
    return {qkv.data() + which * size, 3 * steps * size, shape.width, 3 * size};
  }
  /// Where number i of head (b, a), step t of the queries (0), keys (1) or values (2) lies.
  T& number(int64_t which, int64_t b, int64_t a, int64_t t, int64_t i) {
    const auto at = input(which).at(b, a, t) + i - qkv.data();
    return qkv[static_cast<size_t>(at)];
  }

  AttentionShape shape;
  int64_t steps;
  std::vector<T> qkv, dy;
  std::unique_ptr<bool[]> visible;
  std::vector<int64_t> first;
};

/// As [B, steps, A, hd].
template <class T, class Vector>
Heads<T> heads_in(Vector& numbers, const AttentionShape& s, int64_t steps) {
  return {numbers.data(), steps * s.heads * s.width, s.width, s.heads * s.width};
}

template <class T>
struct Results {
  std::vector<T> y, lse, dq, dk, dv;
  bool operator==(const Results&) const = default;
};

template <class T>
Results<T> run(const Case<T>& c, bool plainly = false) {
  const AttentionShape& s = c.shape;
  const size_t rows = s.batch * s.heads * s.queries, entries = s.batch * s.heads * s.keys;
  const T garbage = std::numeric_limits<T>::quiet_NaN();  // everything is overwritten
  Results<T> r{std::vector<T>(rows * s.width, garbage), std::vector<T>(rows, garbage),
               std::vector<T>(rows * s.width, garbage), std::vector<T>(entries * s.width, garbage),
               std::vector<T>(entries * s.width, garbage)};
  const auto y = heads_in<T>(r.y, s, s.queries), dq = heads_in<T>(r.dq, s, s.queries),
             dk = heads_in<T>(r.dk, s, s.keys), dv = heads_in<T>(r.dv, s, s.keys);
  const auto q = c.input(0), k = c.input(1), v = c.input(2), dy = heads_in<const T>(c.dy, s, s.queries);
  (plainly ? plain::attention_forward<T> : attention_forward<T>)(s, q, k, v, y, r.lse.data());
  const AttentionResult<T> result{q, k, v, heads_in<const T>(r.y, s, s.queries), r.lse.data()};
  (plainly ? plain::attention_backward<T> : attention_backward<T>)(s, result, dy, dq, dk, dv);
  return r;
}

template <class T>
std::vector<double> wide(const std::vector<T>& numbers) {
  return {numbers.begin(), numbers.end()};
}

template <class T>
Case<double> wide(const Case<T>& c, const Sizes& sizes, bool causal, Mask mask) {
  Case<double> copy(sizes, causal, mask);
  copy.qkv = wide(c.qkv);
  copy.dy = wide(c.dy);
  return copy;
}

/// -inf where nothing is seen would make differences NaN.
std::vector<double> finite_or_zero(std::vector<double> numbers) {
  for (double& x : numbers) x = std::isfinite(x) ? x : 0;
  return numbers;
}

template <class T>
void compare(const Results<T>& r, const Results<double>& exact, const Sizes& sizes) {
  // A score adds the roundings of hd products of numbers near 1, a sum of probabilities those of S / 128 + 136 terms of
  // a sum that is 1; gradients are sums over up to 300 of such numbers times dy, of which a few standard deviations.
  const double bound = 200 * static_cast<double>(sizes.width + 20) * rounding<T>;
  EXPECT_LE(largest_difference(wide(r.y), exact.y), bound);
  for (size_t i = 0; i < r.lse.size(); ++i) EXPECT_EQ(std::isinf(r.lse[i]), std::isinf(exact.lse[i])) << i;
  EXPECT_LE(largest_difference(finite_or_zero(wide(r.lse)), finite_or_zero(exact.lse)), bound);
  EXPECT_LE(largest_difference(wide(r.dq), exact.dq), bound);
  EXPECT_LE(largest_difference(wide(r.dk), exact.dk), bound);
  EXPECT_LE(largest_difference(wide(r.dv), exact.dv), bound);
}

template <class T>
void compare_with_plain(const Sizes& sizes, bool causal, Mask mask) {
  SCOPED_TRACE(testing::Message() << "B " << sizes.batch << " A " << sizes.heads << " T " << sizes.queries << " S "
                                  << sizes.keys << " hd " << sizes.width << " causal " << causal << " mask "
                                  << static_cast<int>(mask));
  const Case<T> c(sizes, causal, mask);
  const Results<double> exact = run(wide(c, sizes, causal, mask), true);
  for_each_target([&] { compare(run(c), exact, sizes); });
}

template <class T>
bool finite(const std::vector<T>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](T x) { return std::isfinite(x); });
}

// Numbers of one step in an array [B, steps, A, hd].
template <class T>
std::vector<T> step_of(const std::vector<T>& numbers, const Case<T>& c, int64_t steps, int64_t b, int64_t t) {
  const int64_t size = c.shape.heads * c.shape.width;
  const auto begin = numbers.begin() + (b * steps + t) * size;
  return {begin, begin + size};
}

TYPED_TEST(Attention, EqualsThePlainLoops) {
  for (const Mask mask : {Mask::none, Mask::first, Mask::row, Mask::pairs, Mask::everything}) {
    for (const bool causal : {false, true}) {
      compare_with_plain<TypeParam>({2, 2, 9, 9, 4}, causal, mask);
      compare_with_plain<TypeParam>({1, 1, 300, 300, 8}, causal, mask);  // chunks, blocks and tiles
      compare_with_plain<TypeParam>({2, 3, 70, 141, 33}, causal, mask);  // a cache before them
      compare_with_plain<TypeParam>({2, 1, 20, 7, 5}, causal, mask);     // fewer keys than queries
      compare_with_plain<TypeParam>({2, 2, 1, 290, 64}, causal, mask);   // one query
      compare_with_plain<TypeParam>({1, 2, 257, 3, 16}, causal, mask);   // few keys, and a chunk of one query
    }
  }
}

TYPED_TEST(Attention, FloatsFollowDoublesTo1e5) {
  const Sizes sizes{1, 2, 600, 600, 64};
  const Case<TypeParam> c(sizes, true, Mask::none);
  const Results<TypeParam> r = run(c);
  const Results<double> exact = run(wide(c, sizes, true, Mask::none), true);
  // A weight is off by the roundings of its score, a product of 64 numbers near 1: some 100 of 6e-8. Outputs and
  // gradients are averages over weights that sum to 1.
  EXPECT_LE(largest_difference(wide(r.y), exact.y), 1e-5);
  EXPECT_LE(largest_difference(wide(r.dq), exact.dq), 1e-5);
  EXPECT_LE(largest_difference(wide(r.dk), exact.dk), 1e-5);
  EXPECT_LE(largest_difference(wide(r.dv), exact.dv), 2e-5);  // key 0 sums up to 600 numbers near 3
}

TYPED_TEST(Attention, LargeScoresNeitherOverflowNorVanish) {
  const Sizes sizes{1, 1, 40, 300, 16};
  Case<TypeParam> c(sizes, false, Mask::none);
  c.shape.scale = 300;  // exp of the scores themselves would be infinite, and their maximum comes late
  const Results<TypeParam> r = run(c);
  Case<double> exact_case = wide(c, sizes, false, Mask::none);
  exact_case.shape.scale = 300;
  // A score of 4000 has an error of 4000 * 20 roundings, and so has the logarithm of its probability.
  EXPECT_LE(largest_difference(wide(r.y), run(exact_case, true).y), 4 * 4000 * 20 * rounding<TypeParam>);
}

TYPED_TEST(Attention, TakesAnyScale) {
  using T = TypeParam;
  for (const double scale : {-0.7, 0.0}) {
    for (const Mask mask : {Mask::none, Mask::everything}) {
      SCOPED_TRACE(testing::Message() << scale << ", mask " << static_cast<int>(mask));
      const Sizes sizes{1, 2, 150, 150, 9};
      Case<T> c(sizes, true, mask);
      Case<double> exact_case = wide(c, sizes, true, mask);
      c.shape.scale = exact_case.shape.scale = scale;
      const Results<double> exact = run(exact_case, true);
      for_each_target([&] { compare(run(c), exact, sizes); });
    }
  }
}

// One head is one task of one thread, which makes its scores once, and several of three threads, which make them twice.
TYPED_TEST(Attention, DoesNotDependOnTheThreadCount) {
  for (const Sizes& sizes : {Sizes{2, 3, 300, 520, 16}, Sizes{1, 1, 300, 520, 16}}) {
    for (const Mask mask : {Mask::none, Mask::everything}) {
      const Case<TypeParam> c(sizes, true, mask);
      expect_same_for_every_thread_count([&] { return run(c); });
    }
  }
}

TYPED_TEST(Attention, AFutureThatIsNanReachesNoEarlierQuery) {
  using T = TypeParam;
  for_each_target([] {
    const int64_t steps = 200;
    for (const int64_t bad : {1, 17, 64, 130, 199}) {
      SCOPED_TRACE(bad);
      Case<T> c({1, 1, steps, steps, 8}, true, Mask::none);
      for (const int64_t which : {0, 1, 2}) c.number(which, 0, 0, bad, 3) = std::numeric_limits<T>::quiet_NaN();
      const Results<T> r = run(c);
      for (int64_t t = 0; t < steps; ++t) {
        EXPECT_EQ(finite(step_of(r.y, c, steps, 0, t)), t < bad) << t;
        EXPECT_EQ(finite(step_of(r.dq, c, steps, 0, t)), t < bad) << t;
      }
    }
  });
}

TYPED_TEST(Attention, WhatIsNotSeenMayBeNan) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t queries : {2, 200}) {
      for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
        SCOPED_TRACE(testing::Message() << queries << " queries, " << bad);
        Case<T> c({2, 2, queries, 300, 16}, true, Mask::row);
        for (int64_t b = 0; b < 2; ++b) {
          for (int64_t j = 0; j < 300; ++j) {
            c.visible[b * 300 + j] = j % 50 != 3;
            for (int64_t i = 0; i < 16 && !c.visible[b * 300 + j]; ++i) {
              c.number(1, b, 0, j, i) = bad;
              c.number(2, b, 1, j, i) = bad;
            }
          }
        }
        const Results<T> r = run(c);
        EXPECT_TRUE(finite(r.y) && finite(r.lse) && finite(r.dq) && finite(r.dk) && finite(r.dv));
        EXPECT_EQ(step_of(r.dk, c, 300, 1, 53), std::vector<T>(32, 0));
        EXPECT_EQ(step_of(r.dv, c, 300, 1, 53), std::vector<T>(32, 0));
      }
    }
  });
}

TYPED_TEST(Attention, NanReachesOnlyTheQueriesThatSeeIt) {
  using T = TypeParam;
  for (const int64_t which : {0, 1, 2}) {
    SCOPED_TRACE(which);
    Case<T> c({2, 1, 200, 200, 8}, true, Mask::none);
    c.number(which, 1, 0, 150, 0) = std::numeric_limits<T>::quiet_NaN();
    const Results<T> r = run(c);
    for (const int64_t t : {0, 149, 150, 151, 199}) {
      const bool hit = which == 0 ? t == 150 : t >= 150;
      EXPECT_TRUE(finite(step_of(r.y, c, 200, 0, t))) << "the other row";
      EXPECT_EQ(finite(step_of(r.y, c, 200, 1, t)), !hit) << t;
      EXPECT_EQ(finite(step_of(r.dq, c, 200, 1, t)), !hit) << t;
    }
    EXPECT_TRUE(finite(step_of(r.dk, c, 200, 1, 199)) == (which == 0)) << "no query but 199 sees key 199";
  }
}

TYPED_TEST(Attention, AGradientThatIsNanStaysWithItsQuery) {
  using T = TypeParam;
  Case<T> c({1, 1, 200, 200, 8}, true, Mask::none);
  c.dy[100 * 8] = std::numeric_limits<T>::quiet_NaN();
  const Results<T> r = run(c);
  for (const int64_t t : {0, 99, 100, 101, 199}) {
    EXPECT_EQ(finite(step_of(r.dq, c, 200, 0, t)), t != 100) << t;
    EXPECT_EQ(finite(step_of(r.dk, c, 200, 0, t)), t > 100) << t;
    EXPECT_EQ(finite(step_of(r.dv, c, 200, 0, t)), t > 100) << t;
  }
}

TYPED_TEST(Attention, AQueryThatSeesNothingGivesZeros) {
  using T = TypeParam;
  for (const int64_t queries : {3, 100}) {
    Case<T> c({1, 2, queries, 100, 8}, false, Mask::first);
    std::fill(c.first.begin(), c.first.end(), 0);
    c.first[2] = 100;
    c.number(0, 0, 0, 2, 0) = std::numeric_limits<T>::quiet_NaN();  // not even what the query itself is
    for (int64_t i = 0; i < 16; ++i) c.dy[2 * 16 + i] = std::numeric_limits<T>::infinity();
    const Results<T> r = run(c);
    EXPECT_EQ(step_of(r.y, c, queries, 0, 2), std::vector<T>(16, 0));
    EXPECT_EQ(r.lse[2], -std::numeric_limits<T>::infinity());
    EXPECT_EQ(step_of(r.dq, c, queries, 0, 2), std::vector<T>(16, 0));
    EXPECT_TRUE(finite(r.dk) && finite(r.dv));
  }
}

TYPED_TEST(Attention, AQueryWhoseScoresAllOverflowGivesZeros) {
  using T = TypeParam;
  Case<T> c({1, 1, 3, 9, 2}, false, Mask::none);
  const T huge = std::sqrt(std::numeric_limits<T>::max());
  for (int64_t j = 0; j < 9; ++j) {
    for (int64_t i = 0; i < 2; ++i) {
      c.number(1, 0, 0, j, i) = -4 * huge;
      for (const int64_t t : {0, 1, 2}) c.number(0, 0, 0, t, i) = t == 1 ? huge : 0;
    }
  }
  const Results<T> r = run(c);
  EXPECT_EQ(r.lse[1], -std::numeric_limits<T>::infinity());
  EXPECT_EQ(step_of(r.y, c, 3, 0, 1), std::vector<T>(2, 0));
  EXPECT_EQ(step_of(r.dq, c, 3, 0, 1), std::vector<T>(2, 0));
  EXPECT_TRUE(finite(r.dk) && finite(r.dv));
}

TYPED_TEST(Attention, TakesEmptySizes) {
  for (const Sizes& sizes : {Sizes{0, 2, 3, 3, 4}, Sizes{2, 2, 0, 3, 4}, Sizes{2, 2, 3, 0, 4}}) {
    const Results<TypeParam> r = run(Case<TypeParam>(sizes, true, Mask::none));
    EXPECT_EQ(r.y, std::vector<TypeParam>(r.y.size(), 0));
    EXPECT_EQ(r.dk, std::vector<TypeParam>(r.dk.size(), 0));
  }
}

}  // namespace
}  // namespace carousel::kernels
