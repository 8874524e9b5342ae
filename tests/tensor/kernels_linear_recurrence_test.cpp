#include "kernels_common.h"
#include "recurrence_case.h"

#include <carousel/tensor/kernels/linear_recurrence.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

template <class T>
class LinearRecurrence : public ForFloats<T> {};
TYPED_TEST_SUITE(LinearRecurrence, Floats);

/// A sequence with everything that forward and backward take.
template <class T>
struct Case : RecurrenceCase {
  Case(int64_t steps, int64_t batch, int64_t hidden, bool one_factor, bool with_reset, bool with_lengths)
      : RecurrenceCase(steps, batch, hidden, with_reset, with_lengths),
        stride(one_factor ? 0 : hidden),
        a(random_numbers<T>(one_factor ? hidden : all(), 1, 0.5)),
        h0(random_numbers<T>(states(), 2)),
        b(random_numbers<T>(all(), 3)),
        dy(random_numbers<T>(all(), 4)),
        dh_last(random_numbers<T>(states(), 5)) {}

  RecurrenceFactors<T> factors() const { return {a.data(), stride}; }

  int64_t stride;
  std::vector<T> a, h0, b, dy, dh_last;
};

template <class T>
struct Results {
  explicit Results(const Case<T>& c)
      : h(c.b), dh(c.all(), unwritten<T>), h_last(c.states(), unwritten<T>), dh0(c.states(), unwritten<T>) {}
  bool operator==(const Results&) const = default;

  std::vector<T> h, dh, h_last, dh0;
};

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r(c);
  linear_recurrence<T>(c.shape, c.factors(), c.h0.data(), r.h.data(), r.h_last.data());
  linear_recurrence_backward<T>(c.shape, c.factors(), c.dy.data(), c.dh_last.data(), r.dh.data(), r.dh0.data());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r(c);
  plain::linear_recurrence<T>(c.shape, c.factors(), c.h0.data(), r.h.data(), r.h_last.data());
  plain::linear_recurrence_backward<T>(c.shape, c.factors(), c.dy.data(), c.dh_last.data(), r.dh.data(), r.dh0.data());
  return r;
}

TYPED_TEST(LinearRecurrence, EqualsThePlainLoop) {
  for (const bool one_factor : {false, true}) {
    for (const bool with_reset : {false, true}) {
      for (const bool with_lengths : {false, true}) {
        for (const int64_t batch : {1, 13}) {
          SCOPED_TRACE(testing::Message() << "one factor " << one_factor << ", reset " << with_reset << ", lengths "
                                          << with_lengths << ", batch " << batch);
          const Case<TypeParam> c(9, batch, 37, one_factor, with_reset, with_lengths);
          const Results<TypeParam> r = run(c), p = run_plain(c);
          // 9 steps of a product and a sum, of numbers up to about 20 (a is sometimes above 1).
          const double bound = 9 * 2 * 20 * rounding<TypeParam>;
          EXPECT_LE(largest_difference(r.h, p.h), bound);
          EXPECT_LE(largest_difference(r.h_last, p.h_last), bound);
          EXPECT_LE(largest_difference(r.dh, p.dh), bound);
          EXPECT_LE(largest_difference(r.dh0, p.dh0), bound);
        }
      }
    }
  }
}

TYPED_TEST(LinearRecurrence, ThreeStepsAreTheFormula) {
  using T = TypeParam;
  Case<T> c(3, 1, 1, false, false, false);
  c.a = {T{0.5}, 2, -1};
  c.b = {1, 3, T{0.25}};
  c.h0 = {4};
  c.dy = {1, 10, 100};
  c.dh_last = {1000};
  const Results<T> r = run(c);
  EXPECT_EQ(r.h, (std::vector<T>{3, 9, T{-8.75}}));
  EXPECT_EQ(r.h_last, (std::vector<T>{T{-8.75}}));
  EXPECT_EQ(r.dh, (std::vector<T>{-2179, -1090, 1100}));
  EXPECT_EQ(r.dh0, (std::vector<T>{T{-1089.5}}));
}

TYPED_TEST(LinearRecurrence, WhatIsCutOffOrHasEndedReachesNothing) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  Case<T> c(4, 3, 5, false, true, true);
  std::fill_n(c.reset.get(), 12, false);
  c.reset[0] = true;      // row 0 begins anew
  c.lengths = {4, 0, 2};  // row 1 never begins, row 2 ends early
  c.shape.lengths = c.lengths.data();
  std::fill_n(c.h0.begin(), 10, nan);
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t b = 1; b < 3; ++b) {
      if (t < c.lengths[b]) continue;
      for (std::vector<T>* values : {&c.a, &c.b, &c.dy}) std::fill_n(values->begin() + (t * 3 + b) * 5, 5, nan);
    }
  }
  const Results<T> r = run(c);
  for (const std::vector<T>* values : {&r.h, &r.dh, &r.dh0}) {
    EXPECT_TRUE(std::all_of(values->begin(), values->end(), [](T x) { return std::isfinite(x); }));
  }
  EXPECT_TRUE(std::isnan(r.h_last[5])) << "the state of the row without steps stays what it was";
}

TYPED_TEST(LinearRecurrence, NullGradientsAreZerosAndNanIsCarried) {
  using T = TypeParam;
  Case<T> c(5, 2, 8, false, false, false);
  Results<T> r = run(c);
  linear_recurrence_backward<T>(c.shape, c.factors(), nullptr, nullptr, r.dh.data(), r.dh0.data());
  EXPECT_EQ(r.dh, std::vector<T>(c.all(), 0));
  EXPECT_EQ(r.dh0, std::vector<T>(c.states(), 0));
  c.b[0] = std::numeric_limits<T>::quiet_NaN();
  r = run(c);
  EXPECT_TRUE(std::isnan(r.h_last[0]));
  EXPECT_FALSE(std::isnan(r.h_last[8])) << "the other row";
}

TYPED_TEST(LinearRecurrence, DoesNotDependOnTheThreadCount) {
  const Case<TypeParam> c(200, 33, 64, false, true, true);
  expect_same_for_every_thread_count([&] { return run(c); });
}

}  // namespace
}  // namespace carousel::kernels
