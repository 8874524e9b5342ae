#include "kernels_common.h"

#include <carousel/tensor/kernels/causal_conv.h>

#include <memory>

namespace carousel::kernels {
namespace {

template <class T>
class CausalConv : public ForFloats<T> {};
TYPED_TEST_SUITE(CausalConv, Floats);

/// A sequence with everything that forward and backward take.
template <class T>
struct Case {
  Case(int64_t steps, int64_t batch, int64_t channels, int64_t width, bool with_reset, bool with_lengths)
      : shape{{.steps = steps, .batch = batch}, channels, width},
        reset(new bool[steps * batch]()),
        x(random_numbers<T>(steps * batch * channels, 1)),
        window(random_numbers<T>(batch * channels * (width - 1), 2)),
        weight(random_numbers<T>(channels * width, 3)),
        bias(random_numbers<T>(channels, 4)),
        dy(random_numbers<T>(steps * batch * channels, 5)),
        dwindow_last(random_numbers<T>(batch * channels * (width - 1), 6)) {
    for (int64_t b = 0; b < batch; ++b) lengths.push_back((b * 5 + 3) % (steps + 1));
    for (int64_t i = 0; i < steps * batch; ++i) reset[i] = i % 7 == 2;
    if (with_reset) shape.reset = reset.get();
    if (with_lengths) shape.lengths = lengths.data();
  }

  CausalConvShape shape;
  std::unique_ptr<bool[]> reset;
  std::vector<int64_t> lengths;
  std::vector<T> x, window, weight, bias, dy, dwindow_last;
};

/// Filled with a number that none of them may keep.
template <class T>
struct Results {
  explicit Results(const Case<T>& c)
      : y(c.x.size(), 77),
        window_last(c.window.size(), 77),
        dx(c.x.size(), 77),
        dweight(c.weight.size(), 77),
        dbias(c.bias.size(), 77),
        dwindow(c.window.size(), 77),
        windows(c.shape.steps * c.window.size(), 77),
        dwindows(windows.size(), 77) {}

  /// The windows seen begin with those of step `first`.
  CausalConvGradients<T> gradients(int64_t first = 0) {
    const int64_t seen = first * static_cast<int64_t>(window_last.size());
    return {.dx = dx.data(),
            .dweight = dweight.data(),
            .dbias = dbias.data(),
            .dwindow = dwindow.data(),
            .windows = windows.data() + seen,
            .dwindows = dwindows.data() + seen};
  }
  bool operator==(const Results&) const = default;

  std::vector<T> y, window_last, dx, dweight, dbias, dwindow, windows, dwindows;
};

template <class T>
Results<T> run(const Case<T>& c) {
  Results<T> r(c);
  causal_conv(c.shape, c.x.data(), c.window.data(), c.weight.data(), c.bias.data(), r.y.data(), r.window_last.data());
  causal_conv_backward(c.shape, 0, c.shape.steps, c.x.data(), c.window.data(), c.weight.data(), c.dy.data(),
                       c.dwindow_last.data(), r.gradients());
  return r;
}

template <class T>
Results<T> run_plain(const Case<T>& c) {
  Results<T> r(c);
  plain::causal_conv(c.shape, c.x.data(), c.window.data(), c.weight.data(), c.bias.data(), r.y.data(),
                     r.window_last.data());
  plain::causal_conv_backward(c.shape, 0, c.shape.steps, c.x.data(), c.window.data(), c.weight.data(), c.dy.data(),
                              c.dwindow_last.data(), r.gradients());
  return r;
}

template <class T>
void compare(const Results<T>& a, const Results<T>& b, int64_t terms) {
  // Sums of so many products of two numbers, few of them above 3.
  const double bound = static_cast<double>(terms) * 10 * rounding<T>;
  EXPECT_LE(largest_difference(a.y, b.y), bound);
  EXPECT_EQ(a.window_last, b.window_last);
  EXPECT_LE(largest_difference(a.dx, b.dx), bound);
  EXPECT_LE(largest_difference(a.dweight, b.dweight), bound);
  EXPECT_LE(largest_difference(a.dbias, b.dbias), bound);
  EXPECT_LE(largest_difference(a.dwindow, b.dwindow), bound);
  EXPECT_EQ(a.windows, b.windows);
  EXPECT_LE(largest_difference(a.dwindows, b.dwindows), bound);
}

TYPED_TEST(CausalConv, EqualsThePlainLoop) {
  for (const int64_t steps : {1, 2, 9}) {
    for (const int64_t width : {1, 2, 4}) {
      for (const bool with_reset : {false, true}) {
        for (const bool with_lengths : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << "T " << steps << ", W " << width << ", reset " << with_reset << ", lengths " << with_lengths);
          for (const int64_t channels : {1, 5, 131}) {
            const Case<TypeParam> c(steps, 6, channels, width, with_reset, with_lengths);
            compare(run(c), run_plain(c), 6 * steps + width);
          }
        }
      }
    }
  }
}

TYPED_TEST(CausalConv, TwoStepsOfOneChannelAreTheFormula) {
  using T = TypeParam;
  const CausalConvShape shape{{.steps = 2, .batch = 1}, 1, 3};
  const std::vector<T> x{5, 7}, window{2, 3}, weight{1, 10, 100}, dy{1, 2}, dwindow_last{1000, 2000};
  const T bias = T{0.5};
  std::vector<T> y(2), last(2), dx(2), dweight(3), dwindow(2);
  T dbias = 0;
  causal_conv(shape, x.data(), window.data(), weight.data(), &bias, y.data(), last.data());
  EXPECT_EQ(y, (std::vector<T>{2 + 30 + 500 + T{0.5}, 3 + 50 + 700 + T{0.5}}));
  EXPECT_EQ(last, (std::vector<T>{5, 7}));
  causal_conv_backward<T>(shape, 0, 2, x.data(), window.data(), weight.data(), dy.data(), dwindow_last.data(),
                          {.dx = dx.data(), .dweight = dweight.data(), .dbias = &dbias, .dwindow = dwindow.data()});
  EXPECT_EQ(dx, (std::vector<T>{100 + 20 + 1000, 200 + 2000}));
  EXPECT_EQ(dweight, (std::vector<T>{2 + 6, 3 + 10, 5 + 14}));
  EXPECT_EQ(dbias, 3);
  EXPECT_EQ(dwindow, (std::vector<T>{1, 10 + 2}));
}

TYPED_TEST(CausalConv, BackwardInBlocksIsBackwardAtOnce) {
  using T = TypeParam;
  const Case<T> c(9, 4, 20, 4, true, true);
  const Results<T> whole = run(c);
  Results<T> blocks(c), late(c);
  causal_conv_backward(c.shape, 5, 9, c.x.data(), c.window.data(), c.weight.data(), c.dy.data(), c.dwindow_last.data(),
                       late.gradients(5));
  const std::vector<T> between = late.dwindow;
  std::copy(late.dx.begin(), late.dx.end(), blocks.dx.begin());  // the later steps are good
  causal_conv_backward(c.shape, 0, 5, c.x.data(), c.window.data(), c.weight.data(), c.dy.data(), between.data(),
                       blocks.gradients());
  for (size_t i = 0; i < late.dweight.size(); ++i) blocks.dweight[i] += late.dweight[i];
  for (size_t i = 0; i < late.dbias.size(); ++i) blocks.dbias[i] += late.dbias[i];
  const size_t seen = 5 * c.window.size();
  std::copy(late.windows.begin() + seen, late.windows.end(), blocks.windows.begin() + seen);
  std::copy(late.dwindows.begin() + seen, late.dwindows.end(), blocks.dwindows.begin() + seen);
  blocks.y = whole.y;
  blocks.window_last = whole.window_last;
  compare(blocks, whole, 9 * 4);
}

TYPED_TEST(CausalConv, NullGradientsAreZeros) {
  using T = TypeParam;
  Case<T> c(5, 3, 8, 4, false, true);
  std::fill(c.dwindow_last.begin(), c.dwindow_last.end(), T{0});
  const Results<T> zeros = run(c);
  Results<T> null(c);
  causal_conv_backward<T>(c.shape, 0, 5, c.x.data(), c.window.data(), c.weight.data(), c.dy.data(), nullptr,
                          null.gradients());
  EXPECT_EQ(null.dx, zeros.dx);
  EXPECT_EQ(null.dwindow, zeros.dwindow);
  causal_conv_backward<T>(c.shape, 0, 5, c.x.data(), c.window.data(), c.weight.data(), nullptr, nullptr,
                          null.gradients());
  EXPECT_EQ(null.dx, std::vector<T>(c.x.size(), 0));
  EXPECT_EQ(null.dweight, std::vector<T>(c.weight.size(), 0));
}

TYPED_TEST(CausalConv, WhatIsCutOffMayBeNan) {
  using T = TypeParam;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  Case<T> c(5, 2, 3, 4, true, true);
  c.reset.reset(new bool[10]());
  c.shape.reset = c.reset.get();
  c.reset[0] = true;  // row 0 is cut from its window; row 1 has no steps
  c.lengths = {3, 0};
  c.shape.lengths = c.lengths.data();
  std::fill(c.window.begin(), c.window.end(), nan);
  for (const int64_t at : {1, 3, 5, 6, 7, 8, 9}) {  // row 0 from step 3 on, row 1 from step 0 on
    std::fill_n(c.x.begin() + at * 3, 3, nan);
    std::fill_n(c.dy.begin() + at * 3, 3, nan);
  }
  const Results<T> r = run(c);
  for (const auto& numbers : {r.y, r.dx, r.dweight, r.dbias, r.dwindow, r.windows, r.dwindows}) {
    for (const T number : numbers) EXPECT_TRUE(std::isfinite(number));
  }
  EXPECT_TRUE(std::isfinite(r.window_last[0]));
  EXPECT_TRUE(std::isnan(r.window_last[9])) << "row 1 keeps its window";
}

TYPED_TEST(CausalConv, DoesNotDependOnTheThreadCount) {
  const Case<TypeParam> c(64, 33, 150, 4, true, true);
  expect_same_for_every_thread_count([&] { return run(c); });
}

}  // namespace
}  // namespace carousel::kernels
