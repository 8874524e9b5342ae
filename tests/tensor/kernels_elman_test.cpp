#include "kernels_common.h"
#include "recurrence_case.h"

#include <carousel/tensor/kernels/elman.h>

namespace carousel::kernels {
namespace {

template <class T>
class Elman : public ForFloats<T> {};
TYPED_TEST_SUITE(Elman, Floats);

/// A sequence with everything that forward and backward take.
template <class T>
struct Case : RecurrenceCase {
  Case(int64_t steps, int64_t batch, int64_t hidden, Nonlinearity nonlinearity, bool with_reset, bool with_lengths)
      : RecurrenceCase(steps, batch, hidden, with_reset, with_lengths),
        f(nonlinearity),
        w(random_numbers<T>(hidden * hidden, 1, 0.7 / std::sqrt(hidden))),
        h0(random_numbers<T>(states(), 2)),
        pre(random_numbers<T>(all(), 3)),
        dy(random_numbers<T>(all(), 4)),
        dh_last(random_numbers<T>(states(), 5)) {}

  Nonlinearity f;
  std::vector<T> w, h0, pre, dy, dh_last;
};

template <class T>
struct Results {
  std::vector<T> h, h_last, dh, dz, dh0;
  bool operator==(const Results&) const = default;
};

template <class T>
Results<T> buffers(const Case<T>& c) {
  const std::vector<T> all(c.all(), unwritten<T>), state(c.states(), unwritten<T>);
  return {c.pre, state, all, all, state};
}

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r = buffers(c);
  const int64_t n = c.shape.hidden;
  elman_forward(c.shape, c.f, PackedMatrix<T>(n, n, c.w.data(), 1, n), c.h0.data(), r.h.data(), r.h_last.data());
  elman_backward(c.shape, c.f, PackedMatrix<T>(n, n, c.w.data(), n, 1), r.h.data(), c.dy.data(), c.dh_last.data(),
                 r.dh.data(), r.dz.data(), r.dh0.data());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r = buffers(c);
  plain::elman_forward(c.shape, c.f, c.w.data(), c.h0.data(), r.h.data(), r.h_last.data());
  plain::elman_backward(c.shape, c.f, c.w.data(), r.h.data(), c.dy.data(), c.dh_last.data(), r.dh.data(), r.dz.data(),
                        r.dh0.data());
  return r;
}

template <class T>
void compare_with_plain(const Case<T>& c) {
  const Results<T> r = run(c), p = run_plain(c);
  // A step adds a product and a tanh (some 10 roundings of numbers near 1 each way); W of norm 1.4 passes them on over
  // at most 9 steps, where tanh does not shrink them: 1.4^9 = 21 times.
  const double bound = 21 * 9 * 10 * rounding<T>;
  EXPECT_LE(largest_difference(r.h, p.h), bound);
  EXPECT_LE(largest_difference(r.h_last, p.h_last), bound);
  EXPECT_LE(largest_difference(r.dh, p.dh), bound);
  EXPECT_LE(largest_difference(r.dz, p.dz), bound);
  EXPECT_LE(largest_difference(r.dh0, p.dh0), bound);
}

TYPED_TEST(Elman, EqualsThePlainLoop) {
  for_each_target([] {
    for (const Nonlinearity f : {Nonlinearity::tanh, Nonlinearity::relu}) {
      for (const bool with_reset : {false, true}) {
        for (const bool with_lengths : {false, true}) {
          SCOPED_TRACE(testing::Message() << (f == Nonlinearity::tanh ? "tanh" : "relu") << ", reset " << with_reset
                                          << ", lengths " << with_lengths);
          compare_with_plain(Case<TypeParam>(9, 1, 32, f, with_reset, with_lengths));
          compare_with_plain(Case<TypeParam>(9, 13, 37, f, with_reset, with_lengths));
        }
      }
    }
  });
}

TYPED_TEST(Elman, AScalarRecurrenceIsTheFormula) {
  using T = TypeParam;
  const Recurrence shape{{.steps = 2, .batch = 1}, 1};
  const T w = T{0.5}, h0 = T{0.25}, dlast = 1;
  std::vector<T> h{T{0.1}, T{-0.3}}, dy{2, 3}, dh(2), dz(2);
  T last = 0, dh0 = 0;
  const PackedMatrix<T> packed(1, 1, &w, 1, 1);
  elman_forward(shape, Nonlinearity::tanh, packed, &h0, h.data(), &last);
  const double h1 = std::tanh(0.1 + 0.5 * 0.25), h2 = std::tanh(-0.3 + 0.5 * h1);
  const double bound = 20 * rounding<T>;  // a handful of roundings of numbers up to 5
  EXPECT_NEAR(h[0], h1, bound);
  EXPECT_NEAR(h[1], h2, bound);
  EXPECT_EQ(last, h[1]);
  elman_backward(shape, Nonlinearity::tanh, packed, h.data(), dy.data(), &dlast, dh.data(), dz.data(), &dh0);
  EXPECT_NEAR(dh[1], 4, bound);
  EXPECT_NEAR(dz[1], 4 * (1 - h2 * h2), bound);
  EXPECT_NEAR(dh[0], 2 + 0.5 * dz[1], bound);
  EXPECT_NEAR(dh0, 0.5 * dh[0] * (1 - h1 * h1), bound);
}

TYPED_TEST(Elman, BackwardInBlocksIsBackwardAtOnce) {
  using T = TypeParam;
  const Case<T> c(9, 4, 20, Nonlinearity::tanh, true, true);
  const Results<T> whole = run(c);
  Results<T> blocks = buffers(c);
  const int64_t n = c.shape.hidden, split = 4;
  const PackedMatrix<T> weight(n, n, c.w.data(), n, 1);
  const int64_t at = split * c.shape.batch * n;
  std::vector<T> between(c.h0.size());
  elman_backward(c.second(split), c.f, weight, whole.h.data() + at, c.dy.data() + at, c.dh_last.data(),
                 blocks.dh.data() + at, blocks.dz.data() + at, between.data());
  elman_backward(c.first(split), c.f, weight, whole.h.data(), c.dy.data(), between.data(), blocks.dh.data(),
                 blocks.dz.data(), blocks.dh0.data());
  EXPECT_EQ(blocks.dh, whole.dh);
  EXPECT_EQ(blocks.dz, whole.dz);
  EXPECT_EQ(blocks.dh0, whole.dh0);
}

TYPED_TEST(Elman, NullGradientsAreZeros) {
  using T = TypeParam;
  Case<T> c(5, 3, 8, Nonlinearity::tanh, false, true);
  const Results<T> forward = run(c);
  const int64_t n = c.shape.hidden;
  const PackedMatrix<T> weight(n, n, c.w.data(), n, 1);
  Results<T> with_null = buffers(c), with_zeros = buffers(c);
  c.dh_last.assign(c.dh_last.size(), 0);
  elman_backward<T>(c.shape, c.f, weight, forward.h.data(), c.dy.data(), nullptr, nullptr, with_null.dz.data(),
                    with_null.dh0.data());
  elman_backward(c.shape, c.f, weight, forward.h.data(), c.dy.data(), c.dh_last.data(), with_zeros.dh.data(),
                 with_zeros.dz.data(), with_zeros.dh0.data());
  EXPECT_EQ(with_null.dz, with_zeros.dz);
  EXPECT_EQ(with_null.dh0, with_zeros.dh0);
  elman_backward<T>(c.shape, c.f, weight, forward.h.data(), nullptr, nullptr, nullptr, with_null.dz.data(),
                    with_null.dh0.data());
  EXPECT_EQ(with_null.dh0, std::vector<T>(c.h0.size(), 0));
}

TYPED_TEST(Elman, CarriesNanIntoTheState) {
  using T = TypeParam;
  for (const Nonlinearity f : {Nonlinearity::tanh, Nonlinearity::relu}) {
    Case<T> c(3, 2, 5, f, false, false);
    c.pre[0] = std::numeric_limits<T>::quiet_NaN();
    const Results<T> r = run(c);
    EXPECT_TRUE(std::isnan(r.h[0]));
    EXPECT_TRUE(std::isnan(r.h_last[0]));
    EXPECT_FALSE(std::isnan(r.h_last[5])) << "the other row";
  }
}

TYPED_TEST(Elman, DoesNotDependOnTheThreadCount) {
  const Case<TypeParam> c(20, 33, 64, Nonlinearity::tanh, true, true);
  expect_same_for_every_thread_count([&] { return run(c); });
}

}  // namespace
}  // namespace carousel::kernels
