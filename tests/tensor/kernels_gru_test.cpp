#include "kernels_common.h"
#include "recurrence_case.h"

#include <carousel/tensor/kernels/gru.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

template <class T>
class GruKernel : public ForFloats<T> {};
TYPED_TEST_SUITE(GruKernel, Floats);

constexpr GruForm forms[] = {GruForm::reset_after, GruForm::reset_before};

/// A sequence with everything that forward and backward take.
template <class T>
struct Case : RecurrenceCase {
  Case(int64_t steps, int64_t batch, int64_t hidden, GruForm which, bool with_reset, bool with_lengths)
      : RecurrenceCase(steps, batch, hidden, with_reset, with_lengths),
        form(which),
        w(random_numbers<T>(3 * hidden * hidden, 1, 0.7 / std::sqrt(hidden))),
        b_n(random_numbers<T>(hidden, 2)),
        h0(random_numbers<T>(states(), 3)),
        pre(random_numbers<T>(3 * all(), 4)),
        dy(random_numbers<T>(all(), 5)),
        dh_last(random_numbers<T>(states(), 6)) {}

  GruWeights<T> transposed() const { return GruWeights<T>::transposed(shape.hidden, w.data()); }
  GruWeights<T> straight() const { return GruWeights<T>::straight(shape.hidden, w.data()); }
  const T* bias() const { return form == GruForm::reset_after ? b_n.data() : nullptr; }

  GruForm form;
  std::vector<T> w, b_n, h0, pre, dy, dh_last;
};

template <class T>
struct Results {
  explicit Results(const Case<T>& from)
      : gates(from.pre),
        q(from.all(), unwritten<T>),
        h(from.all(), unwritten<T>),
        dgates(from.pre.size(), unwritten<T>),
        dq(from.all(), unwritten<T>),
        dh(from.all(), unwritten<T>),
        h_last(from.states(), unwritten<T>),
        dh0(from.states(), unwritten<T>) {}
  bool operator==(const Results&) const = default;

  GruSequences<T> out() { return {gates.data(), q.data(), h.data()}; }
  GruSequences<const T> memory() const { return {gates.data(), q.data(), h.data()}; }
  GruSequences<T> gradients() { return {dgates.data(), dq.data(), dh.data()}; }

  std::vector<T> gates, q, h, dgates, dq, dh, h_last, dh0;
};

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r(c);
  gru_forward<T>(c.shape, c.form, c.transposed(), c.bias(), c.h0.data(), r.out(), r.h_last.data());
  gru_backward<T>(c.shape, c.form, c.straight(), c.h0.data(), r.memory(), c.dy.data(), c.dh_last.data(), r.gradients(),
                  r.dh0.data());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r(c);
  plain::gru_forward<T>(c.shape, c.form, c.w.data(), c.bias(), c.h0.data(), r.out(), r.h_last.data());
  plain::gru_backward<T>(c.shape, c.form, c.w.data(), c.h0.data(), r.memory(), c.dy.data(), c.dh_last.data(),
                         r.gradients(), r.dh0.data());
  return r;
}

template <class T>
void compare_with_plain(const Case<T>& c) {
  const Results<T> r = run(c), p = run_plain(c);
  // A step adds two products and three functions: some 20 roundings of numbers up to about 4. What is carried over at
  // most 9 steps is a mean of the old state and the new; W of norm 1.4 lets it grow by at most 1.4 in each.
  const double bound = 21 * 9 * 20 * 4 * rounding<T>;
  EXPECT_LE(largest_difference(r.gates, p.gates), bound);
  EXPECT_LE(largest_difference(r.q, p.q), bound);
  EXPECT_LE(largest_difference(r.h, p.h), bound);
  EXPECT_LE(largest_difference(r.h_last, p.h_last), bound);
  EXPECT_LE(largest_difference(r.dgates, p.dgates), bound);
  EXPECT_LE(largest_difference(r.dq, p.dq), bound);
  EXPECT_LE(largest_difference(r.dh, p.dh), bound);
  EXPECT_LE(largest_difference(r.dh0, p.dh0), bound);
}

TYPED_TEST(GruKernel, EqualsThePlainLoop) {
  for_each_target([] {
    for (const GruForm form : forms) {
      for (const bool with_reset : {false, true}) {
        for (const bool with_lengths : {false, true}) {
          SCOPED_TRACE(testing::Message() << "reset " << (form == GruForm::reset_after ? "after" : "before")
                                          << ", reset " << with_reset << ", lengths " << with_lengths);
          compare_with_plain(Case<TypeParam>(9, 1, 32, form, with_reset, with_lengths));
          compare_with_plain(Case<TypeParam>(9, 13, 37, form, with_reset, with_lengths));
        }
      }
    }
  });
}

TYPED_TEST(GruKernel, AScalarStepIsTheFormula) {
  using T = TypeParam;
  for (const GruForm form : forms) {
    const bool after = form == GruForm::reset_after;
    SCOPED_TRACE(after ? "reset after" : "reset before");
    Case<T> c(1, 1, 1, form, false, false);
    c.w = {T{0.5}, T{-1}, T{2}};
    c.b_n = {T{0.75}};
    c.h0 = {T{0.5}};
    c.pre = {T{0.1}, T{0.2}, T{-0.3}};
    c.dy = {2};
    c.dh_last = {1};
    const Results<T> got = run(c);
    const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
    const double r = logistic(0.1 + 0.25), z = logistic(0.2 - 0.5), q = after ? 1 + 0.75 : r * 0.5;
    const double n = std::tanh(-0.3 + (after ? r * q : 2 * q));
    const double bound = 20 * rounding<T>;  // a handful of roundings of numbers up to 5
    EXPECT_NEAR(got.q[0], q, bound);
    EXPECT_NEAR(got.h[0], (1 - z) * n + z * 0.5, bound);
    EXPECT_EQ(got.h_last, got.h);
    const double dn = 3 * (1 - z) * (1 - n * n), dz = 3 * (0.5 - n) * z * (1 - z), dq = after ? dn * r : dn * 2;
    const double dr = (after ? dn * q : dq * 0.5) * r * (1 - r);
    EXPECT_NEAR(got.dgates[0], dr, bound);
    EXPECT_NEAR(got.dgates[1], dz, bound);
    EXPECT_NEAR(got.dgates[2], dn, bound);
    EXPECT_NEAR(got.dq[0], dq, bound);
    EXPECT_EQ(got.dh[0], 3);
    EXPECT_NEAR(got.dh0[0], 3 * z + 0.5 * dr - dz + (after ? 2 * dq : dq * r), bound);
  }
}

TYPED_TEST(GruKernel, BackwardInBlocksIsBackwardAtOnce) {
  using T = TypeParam;
  for (const GruForm form : forms) {
    const Case<T> c(9, 4, 20, form, true, true);
    const Results<T> whole = run(c);
    Results<T> blocks(c);
    const int64_t split = 4, at = split * c.states();
    std::vector<T> between(c.states());
    const auto [gates, q, h] = whole.memory();
    gru_backward<T>(c.second(split), form, c.straight(), h + at - c.states(), {gates + 3 * at, q + at, h + at},
                    c.dy.data() + at, c.dh_last.data(),
                    {blocks.dgates.data() + 3 * at, blocks.dq.data() + at, blocks.dh.data() + at}, between.data());
    gru_backward<T>(c.first(split), form, c.straight(), c.h0.data(), whole.memory(), c.dy.data(), between.data(),
                    blocks.gradients(), blocks.dh0.data());
    EXPECT_EQ(blocks.dgates, whole.dgates);
    EXPECT_EQ(blocks.dq, whole.dq);
    EXPECT_EQ(blocks.dh, whole.dh);
    EXPECT_EQ(blocks.dh0, whole.dh0);
  }
}

TYPED_TEST(GruKernel, NullGradientsAreZeros) {
  using T = TypeParam;
  for (const GruForm form : forms) {
    Case<T> c(5, 3, 8, form, true, true);
    std::fill(c.dy.begin(), c.dy.end(), T{0});
    const Results<T> zeros = run(c);
    Results<T> nulls(c);
    gru_backward<T>(c.shape, form, c.straight(), c.h0.data(), zeros.memory(), nullptr, c.dh_last.data(),
                    {nulls.dgates.data(), nulls.dq.data(), nullptr}, nulls.dh0.data());
    EXPECT_EQ(nulls.dgates, zeros.dgates);
    EXPECT_EQ(nulls.dq, zeros.dq);
    EXPECT_EQ(nulls.dh0, zeros.dh0);
    gru_backward<T>(c.shape, form, c.straight(), c.h0.data(), zeros.memory(), nullptr, nullptr,
                    {nulls.dgates.data(), nulls.dq.data(), nullptr}, nulls.dh0.data());
    EXPECT_EQ(nulls.dgates, std::vector<T>(c.pre.size(), 0));
    EXPECT_EQ(nulls.dh0, std::vector<T>(c.h0.size(), 0));
  }
}

TYPED_TEST(GruKernel, CarriesNanIntoTheStateOfItsRow) {
  using T = TypeParam;
  for (const GruForm form : forms) {
    for (int64_t gate = 0; gate < 3; ++gate) {
      Case<T> c(3, 2, 5, form, false, false);
      c.pre[gate * 5] = std::numeric_limits<T>::quiet_NaN();
      const Results<T> r = run(c);
      EXPECT_TRUE(std::isnan(r.h[0])) << gate;
      EXPECT_TRUE(std::isnan(r.h_last[0])) << gate;
      EXPECT_FALSE(std::isnan(r.h_last[5])) << "the other row";
      EXPECT_FALSE(std::isnan(r.dh0[5])) << "the other row";
    }
  }
}

TYPED_TEST(GruKernel, WhatIsCutOffOrHasEndedReachesNothing) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const GruForm form : forms) {
    Case<T> c(4, 3, 5, form, true, true);
    std::fill_n(c.reset.get(), 12, false);
    c.reset[0] = true;      // row 0 begins anew
    c.lengths = {4, 0, 2};  // row 1 never begins, row 2 ends early
    c.shape.lengths = c.lengths.data();
    std::fill_n(c.h0.begin(), 10, nan);
    for (int64_t t = 0; t < 4; ++t) {
      for (int64_t b = 1; b < 3; ++b) {
        if (t >= c.lengths[b]) std::fill_n(c.dy.begin() + (t * 3 + b) * 5, 5, nan);
      }
    }
    const Results<T> r = run(c);
    for (const std::vector<T>* values : {&r.gates, &r.q, &r.h, &r.dgates, &r.dq, &r.dh, &r.dh0}) {
      EXPECT_TRUE(std::all_of(values->begin(), values->end(), [](T x) { return std::isfinite(x); }));
    }
    EXPECT_TRUE(std::isnan(r.h_last[5])) << "the state of the row without steps stays what it was";
  }
}

TYPED_TEST(GruKernel, DoesNotDependOnTheThreadCount) {
  for (const GruForm form : forms) {
    const Case<TypeParam> c(20, 33, 64, form, true, true);
    expect_same_for_every_thread_count([&] { return run(c); });
  }
}

}  // namespace
}  // namespace carousel::kernels
