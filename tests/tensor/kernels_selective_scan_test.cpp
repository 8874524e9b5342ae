#include "kernels_common.h"

#include <carousel/tensor/kernels/selective_scan.h>

#include <memory>

namespace carousel::kernels {
namespace {

template <class T>
class SelectiveScan : public ForFloats<T> {};
TYPED_TEST_SUITE(SelectiveScan, Floats);

struct Setting {
  bool fixed = false, reset = false, lengths = false;
};

/// A sequence with everything that forward and backward take. Steps are 0 .. 1, A is -2 .. -0.1.
template <class T>
struct Case {
  Case(int64_t steps, int64_t batch, int64_t channels, int64_t states, const Setting& setting)
      : shape{{.steps = steps, .batch = batch}, channels, states, setting.fixed},
        reset(new bool[steps * batch]()),
        u(random_numbers<T>(steps * batch * channels, 1)),
        dt(random_numbers<T>(steps * batch * channels, 2)),
        a(random_numbers<T>(channels * states, 3)),
        b(random_numbers<T>(setting.fixed ? channels * states : steps * batch * states, 4)),
        c(random_numbers<T>(b.size(), 5)),
        d(random_numbers<T>(channels, 6)),
        h0(random_numbers<T>(batch * channels * states, 7)),
        dy(random_numbers<T>(u.size(), 8)),
        dh_last(random_numbers<T>(h0.size(), 9)) {
    for (T& x : dt) x = 1 / (1 + std::exp(-x));
    for (T& x : a) x = T{-0.1} - T{1.9} / (1 + std::exp(-x));
    for (int64_t row = 0; row < batch; ++row) lengths.push_back((row * 5 + 3) % (steps + 1));
    for (int64_t i = 0; i < steps * batch; ++i) reset[i] = i % 7 == 2;
    if (setting.reset) shape.reset = reset.get();
    if (setting.lengths) shape.lengths = lengths.data();
  }

  ScanInputs<T> inputs() const { return {u.data(), dt.data(), a.data(), b.data(), c.data(), d.data()}; }

  ScanShape shape;
  std::unique_ptr<bool[]> reset;
  std::vector<int64_t> lengths;
  std::vector<T> u, dt, a, b, c, d, h0, dy, dh_last;
};

/// Filled with a number that none of them may keep.
template <class T>
struct Results {
  explicit Results(const Case<T>& c)
      : y(c.u.size(), 77),
        h_last(c.h0.size(), 77),
        du(c.u.size(), 77),
        ddt(c.u.size(), 77),
        da(c.a.size(), 77),
        db(c.b.size(), 77),
        dc(c.c.size(), 77),
        dd(c.d.size(), 77),
        dh0(c.h0.size(), 77),
        dh(c.u.size() * c.shape.states, 77) {}

  ScanGradients<T> gradients() {
    return {.u = du.data(),
            .dt = ddt.data(),
            .a = da.data(),
            .b = db.data(),
            .c = dc.data(),
            .d = dd.data(),
            .h0 = dh0.data(),
            .dh = dh.data()};
  }
  std::vector<std::pair<const char*, const std::vector<T>*>> all() const {
    return {{"y", &y},   {"h_last", &h_last}, {"du", &du}, {"ddt", &ddt}, {"da", &da},
            {"db", &db}, {"dc", &dc},         {"dd", &dd}, {"dh0", &dh0}, {"dh", &dh}};
  }
  bool operator==(const Results&) const = default;

  std::vector<T> y, h_last, du, ddt, da, db, dc, dd, dh0, dh;
};

template <class T>
std::vector<T> kept_states(const Case<T>& c) {
  return std::vector<T>(c.shape.blocks() * c.h0.size());
}

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r(c);
  std::vector<T> kept = kept_states(c);
  selective_scan(c.shape, c.inputs(), c.h0.data(), r.y.data(), r.h_last.data(), kept.data());
  selective_scan_backward(c.shape, c.inputs(), kept.data(), c.dy.data(), c.dh_last.data(), r.gradients());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r(c);
  plain::selective_scan(c.shape, c.inputs(), c.h0.data(), r.y.data(), r.h_last.data());
  plain::selective_scan_backward(c.shape, c.inputs(), c.h0.data(), c.dy.data(), c.dh_last.data(), r.gradients());
  return r;
}

template <class T>
void compare(const Results<T>& a, const Results<T>& b, double bound) {
  const auto ours = a.all(), theirs = b.all();
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_LE(largest_difference(*ours[i].second, *theirs[i].second), bound) << ours[i].first;
  }
}

TYPED_TEST(SelectiveScan, EqualsThePlainLoop) {
  using T = TypeParam;
  for_each_target([] {
    for (const bool fixed : {false, true}) {
      for (const bool reset : {false, true}) {
        for (const bool lengths : {false, true}) {
          SCOPED_TRACE(testing::Message() << "fixed " << fixed << ", reset " << reset << ", lengths " << lengths);
          // Sums of up to 40 steps, 5 rows and 70 channels of products of three numbers, each behind exponentials with
          // an error of 5 roundings; states stay below 30.
          const double bound = 40 * 100 * rounding<T>;
          for (const int64_t steps : {1, 16, 40}) {
            for (const int64_t channels : {3, 70}) {
              const Case<T> c(steps, 5, channels, 3, {fixed, reset, lengths});
              compare(run(c), run_plain(c), bound);
            }
          }
        }
      }
    }
  });
}

TYPED_TEST(SelectiveScan, TwoStepsOfOneStateAreTheFormula) {
  using T = TypeParam;
  const ScanShape shape{{.steps = 2, .batch = 1}, 1, 1};
  const std::vector<T> u{2, -1}, dt{T{0.5}, 1}, b{3, 2}, c{1, -2}, dy{1, 4};
  const T a = -1, d = T{0.5}, h0 = 2, dh_last = 3;
  std::vector<T> y(2), kept(1), du(2), ddt(2), db(2), dc(2), dh(2);
  T h_last = 0, da = 0, dd = 0, dh0 = 0;
  const ScanInputs<T> in{u.data(), dt.data(), &a, b.data(), c.data(), &d};
  selective_scan(shape, in, &h0, y.data(), &h_last, kept.data());
  const double e1 = std::exp(-0.5), e2 = std::exp(-1.0), h1 = 2 * e1 + 3, h2 = e2 * h1 - 2;
  const double bound = 100 * rounding<T>;  // a few roundings of numbers up to 20
  EXPECT_NEAR(y[0], h1 + 1, bound);
  EXPECT_NEAR(y[1], -2 * h2 - 0.5, bound);
  EXPECT_NEAR(h_last, h2, bound);
  selective_scan_backward<T>(shape, in, kept.data(), dy.data(), &dh_last,
                             {.u = du.data(),
                              .dt = ddt.data(),
                              .a = &da,
                              .b = db.data(),
                              .c = dc.data(),
                              .d = &dd,
                              .h0 = &dh0,
                              .dh = dh.data()});
  const double g2 = 3 - 8, g1 = 1 + e2 * g2;
  EXPECT_NEAR(dh[1], g2, bound);
  EXPECT_NEAR(dh[0], g1, bound);
  EXPECT_NEAR(dh0, e1 * g1, bound);
  EXPECT_NEAR(du[1], 0.5 * 4 + 1 * 2 * g2, bound);
  EXPECT_NEAR(ddt[1], -g2 * e2 * h1 + 2 * -1 * g2, bound);
  EXPECT_NEAR(da, 0.5 * g1 * e1 * 2 + g2 * e2 * h1, bound);
  EXPECT_NEAR(db[0], 0.5 * 2 * g1, bound);
  EXPECT_NEAR(dc[1], 4 * h2, bound);
  EXPECT_NEAR(dd, 2 - 4, bound);
}

TYPED_TEST(SelectiveScan, BackwardInBlocksIsBackwardAtOnce) {
  using T = TypeParam;
  const Case<T> c(40, 4, 20, 3, {.reset = true, .lengths = true});
  const Results<T> whole = run(c);
  Results<T> late(c), blocks(c);
  std::vector<T> kept = kept_states(c);
  selective_scan(c.shape, c.inputs(), c.h0.data(), blocks.y.data(), blocks.h_last.data(), kept.data());
  ScanShape first = c.shape, second = c.shape;
  const int64_t split = 32, width = 4 * 20;
  first.steps = split;
  second.steps -= split;
  second.first_step = split;
  second.reset += split * 4;
  ScanInputs<T> later = c.inputs();
  later.u += split * width;
  later.dt += split * width;
  later.b += split * 4 * 3;
  later.c += split * 4 * 3;
  ScanGradients<T> out = late.gradients();
  out.u = blocks.du.data() + split * width;
  out.dt = blocks.ddt.data() + split * width;
  out.b = blocks.db.data() + split * 4 * 3;
  out.c = blocks.dc.data() + split * 4 * 3;
  out.dh = blocks.dh.data() + split * width * 3;
  selective_scan_backward(second, later, kept.data() + split / scan_block * width * 3, c.dy.data() + split * width,
                          c.dh_last.data(), out);
  selective_scan_backward(first, c.inputs(), kept.data(), c.dy.data(), late.dh0.data(), blocks.gradients());
  for (size_t i = 0; i < late.da.size(); ++i) blocks.da[i] += late.da[i];
  for (size_t i = 0; i < late.dd.size(); ++i) blocks.dd[i] += late.dd[i];
  compare(blocks, whole, 40 * 4 * 10 * rounding<T>);  // dA and dD are summed in another order
  EXPECT_EQ(blocks.du, whole.du);
  EXPECT_EQ(blocks.dh0, whole.dh0);
}

TYPED_TEST(SelectiveScan, NullGradientsAreZeros) {
  using T = TypeParam;
  Case<T> c(20, 3, 8, 2, {.lengths = true});
  std::fill(c.dh_last.begin(), c.dh_last.end(), T{0});
  const Results<T> zeros = run(c);
  Results<T> null(c);
  std::vector<T> kept = kept_states(c);
  selective_scan(c.shape, c.inputs(), c.h0.data(), null.y.data(), null.h_last.data(), kept.data());
  selective_scan_backward<T>(c.shape, c.inputs(), kept.data(), c.dy.data(), nullptr, null.gradients());
  EXPECT_EQ(null, zeros);
  selective_scan_backward<T>(c.shape, c.inputs(), kept.data(), nullptr, nullptr, null.gradients());
  EXPECT_EQ(null.du, std::vector<T>(c.u.size(), 0));
  EXPECT_EQ(null.da, std::vector<T>(c.a.size(), 0));
}

TYPED_TEST(SelectiveScan, DecaysMayUnderflowOrStayOne) {
  using T = TypeParam;
  for_each_target([] {
    Case<T> c(20, 2, 5, 3, {});
    for (size_t i = 0; i < c.a.size(); ++i) c.a[i] = i % 2 == 0 ? T{-1000} : T{0};
    std::fill(c.dt.begin(), c.dt.end(), T{1});
    const Results<T> r = run(c);
    compare(r, run_plain(c), 20 * 100 * rounding<T>);  // states of A = 0 are sums of 20 terms
    for (const auto& [name, numbers] : r.all()) {
      for (const T number : *numbers) EXPECT_TRUE(std::isfinite(number)) << name;
    }
    EXPECT_EQ(r.dh0[0], 0) << "nothing comes back through a decay of exp(-1000)";
  });
}

TYPED_TEST(SelectiveScan, WhatIsCutOffMayBeNan) {
  using T = TypeParam;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  for (const bool fixed : {false, true}) {
    Case<T> c(5, 2, 3, 2, {.fixed = fixed, .reset = true, .lengths = true});
    c.reset.reset(new bool[10]());
    c.shape.reset = c.reset.get();
    c.reset[0] = true;  // row 0 is cut from its state; row 1 has no steps
    c.lengths = {3, 0};
    c.shape.lengths = c.lengths.data();
    std::fill(c.h0.begin(), c.h0.end(), nan);
    for (const int64_t at : {1, 3, 5, 6, 7, 8, 9}) {  // row 0 from step 3 on, row 1 from step 0 on
      for (std::vector<T>* numbers : {&c.u, &c.dt, &c.dy}) std::fill_n(numbers->begin() + at * 3, 3, nan);
      if (fixed) continue;
      for (std::vector<T>* numbers : {&c.b, &c.c}) std::fill_n(numbers->begin() + at * 2, 2, nan);
    }
    const Results<T> r = run(c);
    for (const auto& [name, numbers] : r.all()) {
      for (size_t i = 0; i < numbers->size(); ++i) {
        const bool kept = name == std::string("h_last") && i >= 6;  // of row 1
        EXPECT_EQ(std::isnan((*numbers)[i]), kept) << name << i;
      }
    }
  }
}

template <class T>
void expect_not_finite_where_plain_is_not(const Case<T>& c) {
  const Results<T> r = run(c), p = run_plain(c);
  const auto ours = r.all(), plain = p.all();
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::vector<T>&numbers = *ours[i].second, &expected = *plain[i].second;
    for (size_t j = 0; j < numbers.size(); ++j) {
      EXPECT_EQ(std::isfinite(numbers[j]), std::isfinite(expected[j])) << ours[i].first << j;
      EXPECT_EQ(std::isnan(numbers[j]), std::isnan(expected[j])) << ours[i].first << j;
    }
  }
}

TYPED_TEST(SelectiveScan, CarriesNanAndInfinityToWhereTheyBelong) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  for_each_target([] {
    for (const int64_t channels : {1, 5}) {  // fewer than a vector holds: its other lanes must not be summed
      Case<T> c(20, 2, channels, 3, {});
      c.u[2 * channels] = std::numeric_limits<T>::quiet_NaN();  // step 1, row 0, channel 0
      expect_not_finite_where_plain_is_not(c);
      const Results<T> r = run(c);
      EXPECT_TRUE(std::isnan(r.h_last[0]));
      EXPECT_TRUE(std::isfinite(r.h_last[channels * 3])) << "the other row";
      c = Case<T>(20, 2, channels, 3, {});
      c.b[60] = infinity;  // step 10, row 0, state 0
      expect_not_finite_where_plain_is_not(c);
      c = Case<T>(20, 2, channels, 3, {});
      c.c[60] = infinity;
      expect_not_finite_where_plain_is_not(c);
    }
  });
}

TYPED_TEST(SelectiveScan, DoesNotDependOnTheThreadCount) {
  for (const bool fixed : {false, true}) {
    const Case<TypeParam> c(40, 7, 150, 8, {.fixed = fixed, .reset = true, .lengths = true});
    expect_same_for_every_thread_count([&] { return run(c); });
  }
}

}  // namespace
}  // namespace carousel::kernels
