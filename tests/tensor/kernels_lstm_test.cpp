#include "kernels_common.h"
#include "recurrence_case.h"

#include <carousel/tensor/kernels/lstm.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

template <class T>
class LstmKernel : public ForFloats<T> {};
TYPED_TEST_SUITE(LstmKernel, Floats);

constexpr LstmForm forms[] = {LstmForm::standard, LstmForm::without_forget_gate};

/// A sequence with everything that forward and backward take.
template <class T>
struct Case : RecurrenceCase {
  Case(int64_t steps, int64_t batch, int64_t hidden, LstmForm which, bool with_reset, bool with_lengths)
      : RecurrenceCase(steps, batch, hidden, with_reset, with_lengths),
        form(which),
        gates(which == LstmForm::standard ? 4 : 3),
        w(random_numbers<T>(gates * hidden * hidden, 1, 0.7 / std::sqrt(hidden))),
        h0(random_numbers<T>(states(), 2)),
        c0(random_numbers<T>(states(), 3)),
        pre(random_numbers<T>(gates * all(), 4)),
        dy(random_numbers<T>(all(), 5)),
        dh_last(random_numbers<T>(states(), 6)),
        dc_last(random_numbers<T>(states(), 7)) {}

  PackedMatrix<T> transposed() const {
    return PackedMatrix<T>(shape.hidden, gates * shape.hidden, w.data(), 1, shape.hidden);
  }
  PackedMatrix<T> weight() const {
    return PackedMatrix<T>(gates * shape.hidden, shape.hidden, w.data(), shape.hidden, 1);
  }
  LstmStates<const T> start() const { return {h0.data(), c0.data()}; }
  LstmStates<const T> dlast() const { return {dh_last.data(), dc_last.data()}; }

  LstmForm form;
  int64_t gates;
  std::vector<T> w, h0, c0, pre, dy, dh_last, dc_last;
};

template <class T>
struct Results {
  explicit Results(const Case<T>& from)
      : gates(from.pre),
        h(from.all(), unwritten<T>),
        c(from.all(), unwritten<T>),
        dh(from.all(), unwritten<T>),
        dc(from.all(), unwritten<T>),
        dz(from.pre.size(), unwritten<T>),
        h_last(from.states(), unwritten<T>),
        c_last(from.states(), unwritten<T>),
        dh0(from.states(), unwritten<T>),
        dc0(from.states(), unwritten<T>) {}
  bool operator==(const Results&) const = default;

  LstmStates<T> states() { return {h.data(), c.data()}; }
  LstmStates<T> last() { return {h_last.data(), c_last.data()}; }
  LstmStates<T> dstates() { return {dh.data(), dc.data()}; }
  LstmStates<T> dstart() { return {dh0.data(), dc0.data()}; }
  LstmMemory<T> memory(const std::vector<T>& c0) const { return {gates.data(), c0.data(), c.data()}; }

  std::vector<T> gates, h, c, dh, dc, dz, h_last, c_last, dh0, dc0;
};

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r(c);
  lstm_forward<T>(c.shape, c.form, c.transposed(), c.start(), r.gates.data(), r.states(), r.last());
  lstm_backward<T>(c.shape, c.form, c.weight(), r.memory(c.c0), c.dy.data(), c.dlast(), r.dstates(), r.dz.data(),
                   r.dstart());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r(c);
  plain::lstm_forward<T>(c.shape, c.form, c.w.data(), c.start(), r.gates.data(), r.states(), r.last());
  plain::lstm_backward<T>(c.shape, c.form, c.w.data(), r.memory(c.c0), c.dy.data(), c.dlast(), r.dstates(), r.dz.data(),
                          r.dstart());
  return r;
}

template <class T>
void compare_with_plain(const Case<T>& c) {
  const Results<T> r = run(c), p = run_plain(c);
  // A step adds a product and five functions: some 20 roundings of numbers up to about 5 (the cell that only adds).
  // Carried over at most 9 steps, over each of which gates below 1 and W of norm 1.4 let it grow by at most 1.4.
  const double bound = 21 * 9 * 20 * 5 * rounding<T>;
  EXPECT_LE(largest_difference(r.gates, p.gates), bound);
  EXPECT_LE(largest_difference(r.h, p.h), bound);
  EXPECT_LE(largest_difference(r.c, p.c), bound);
  EXPECT_LE(largest_difference(r.h_last, p.h_last), bound);
  EXPECT_LE(largest_difference(r.c_last, p.c_last), bound);
  EXPECT_LE(largest_difference(r.dh, p.dh), bound);
  EXPECT_LE(largest_difference(r.dc, p.dc), bound);
  EXPECT_LE(largest_difference(r.dz, p.dz), bound);
  EXPECT_LE(largest_difference(r.dh0, p.dh0), bound);
  EXPECT_LE(largest_difference(r.dc0, p.dc0), bound);
}

TYPED_TEST(LstmKernel, EqualsThePlainLoop) {
  for_each_target([] {
    for (const LstmForm form : forms) {
      for (const bool with_reset : {false, true}) {
        for (const bool with_lengths : {false, true}) {
          SCOPED_TRACE(testing::Message() << (form == LstmForm::standard ? "standard" : "1997") << ", reset "
                                          << with_reset << ", lengths " << with_lengths);
          compare_with_plain(Case<TypeParam>(9, 1, 32, form, with_reset, with_lengths));
          compare_with_plain(Case<TypeParam>(9, 13, 37, form, with_reset, with_lengths));
        }
      }
    }
  });
}

TYPED_TEST(LstmKernel, AScalarStepIsTheFormula) {
  using T = TypeParam;
  Case<T> c(1, 1, 1, LstmForm::standard, false, false);
  c.w = {T{0.5}, T{-1}, T{0.25}, T{2}};
  c.h0 = {T{0.5}};
  c.c0 = {T{-0.75}};
  c.pre = {T{0.1}, T{0.2}, T{-0.3}, T{0.4}};
  c.dy = {2};
  c.dh_last = {1};
  c.dc_last = {T{-0.5}};
  const Results<T> r = run(c);
  const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double i = logistic(0.1 + 0.25), f = logistic(0.2 - 0.5), g = std::tanh(-0.3 + 0.125), o = logistic(0.4 + 1);
  const double cell = f * -0.75 + i * g, squashed = std::tanh(cell);
  const double bound = 20 * rounding<T>;  // a handful of roundings of numbers up to 5
  EXPECT_NEAR(r.c[0], cell, bound);
  EXPECT_NEAR(r.h[0], o * squashed, bound);
  EXPECT_EQ(r.h_last, r.h);
  EXPECT_EQ(r.c_last, r.c);
  const double dc = -0.5 + 3 * o * (1 - squashed * squashed);
  const double dz[] = {dc * g * i * (1 - i), dc * -0.75 * f * (1 - f), dc * i * (1 - g * g),
                       3 * squashed * o * (1 - o)};
  double dh0 = 0;
  for (int gate = 0; gate < 4; ++gate) {
    EXPECT_NEAR(r.dz[gate], dz[gate], bound) << gate;
    dh0 += dz[gate] * c.w[gate];
  }
  EXPECT_EQ(r.dh[0], 3);
  EXPECT_NEAR(r.dc[0], dc, bound);
  EXPECT_NEAR(r.dh0[0], dh0, bound);
  EXPECT_NEAR(r.dc0[0], dc * f, bound);
}

TYPED_TEST(LstmKernel, BackwardInBlocksIsBackwardAtOnce) {
  using T = TypeParam;
  for (const LstmForm form : forms) {
    const Case<T> c(9, 4, 20, form, true, true);
    const Results<T> whole = run(c);
    Results<T> blocks(c);
    const int64_t split = 4, at = split * c.states();
    std::vector<T> dh(c.states()), dc(c.states());
    const LstmMemory<T> memory = whole.memory(c.c0);
    const LstmMemory<T> later{memory.gates + c.gates * at, memory.c + at - c.states(), memory.c + at};
    lstm_backward<T>(c.second(split), form, c.weight(), later, c.dy.data() + at, c.dlast(),
                     {blocks.dh.data() + at, blocks.dc.data() + at}, blocks.dz.data() + c.gates * at,
                     {dh.data(), dc.data()});
    lstm_backward<T>(c.first(split), form, c.weight(), memory, c.dy.data(), {dh.data(), dc.data()}, blocks.dstates(),
                     blocks.dz.data(), blocks.dstart());
    EXPECT_EQ(blocks.dh, whole.dh);
    EXPECT_EQ(blocks.dc, whole.dc);
    EXPECT_EQ(blocks.dz, whole.dz);
    EXPECT_EQ(blocks.dh0, whole.dh0);
    EXPECT_EQ(blocks.dc0, whole.dc0);
  }
}

TYPED_TEST(LstmKernel, NullGradientsAreZeros) {
  using T = TypeParam;
  Case<T> c(5, 3, 8, LstmForm::standard, true, true);
  for (std::vector<T>* zero : {&c.dy, &c.dh_last}) std::fill(zero->begin(), zero->end(), T{0});
  const Results<T> zeros = run(c);
  Results<T> nulls(c);
  lstm_backward<T>(c.shape, c.form, c.weight(), zeros.memory(c.c0), nullptr, {nullptr, c.dc_last.data()},
                   {nullptr, nullptr}, nulls.dz.data(), nulls.dstart());
  EXPECT_EQ(nulls.dz, zeros.dz);
  EXPECT_EQ(nulls.dh0, zeros.dh0);
  EXPECT_EQ(nulls.dc0, zeros.dc0);
  lstm_backward<T>(c.shape, c.form, c.weight(), zeros.memory(c.c0), nullptr, {nullptr, nullptr}, {nullptr, nullptr},
                   nulls.dz.data(), nulls.dstart());
  EXPECT_EQ(nulls.dz, std::vector<T>(c.pre.size(), 0));
  EXPECT_EQ(nulls.dc0, std::vector<T>(c.c0.size(), 0));
}

TYPED_TEST(LstmKernel, CarriesNanIntoTheStateOfItsRow) {
  using T = TypeParam;
  for (const LstmForm form : forms) {
    for (int64_t gate = 0; gate < (form == LstmForm::standard ? 4 : 3); ++gate) {
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

TYPED_TEST(LstmKernel, WhatIsCutOffOrHasEndedReachesNothing) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  Case<T> c(4, 3, 5, LstmForm::standard, true, true);
  std::fill_n(c.reset.get(), 12, false);
  c.reset[0] = true;      // row 0 begins anew
  c.lengths = {4, 0, 2};  // row 1 never begins, row 2 ends early
  c.shape.lengths = c.lengths.data();
  std::fill_n(c.h0.begin(), 10, nan);
  std::fill_n(c.c0.begin(), 10, nan);
  for (int64_t t = 0; t < 4; ++t) {
    for (int64_t b = 1; b < 3; ++b) {
      if (t >= c.lengths[b]) std::fill_n(c.dy.begin() + (t * 3 + b) * 5, 5, nan);
    }
  }
  const Results<T> r = run(c);
  const auto finite = [](const std::vector<T>& values) {
    return std::all_of(values.begin(), values.end(), [](T x) { return std::isfinite(x); });
  };
  for (const std::vector<T>* values : {&r.gates, &r.h, &r.c, &r.dh, &r.dc, &r.dz, &r.dh0, &r.dc0}) {
    EXPECT_TRUE(finite(*values));
  }
  EXPECT_TRUE(std::isnan(r.c_last[5])) << "the state of the row without steps stays what it was";
}

TYPED_TEST(LstmKernel, DoesNotDependOnTheThreadCount) {
  for (const LstmForm form : forms) {
    const Case<TypeParam> c(20, 33, 64, form, true, true);
    expect_same_for_every_thread_count([&] { return run(c); });
  }
}

}  // namespace
}  // namespace carousel::kernels
