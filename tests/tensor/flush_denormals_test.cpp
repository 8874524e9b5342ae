#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/blocked_product.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/kernels/norm.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "restore_threads.h"

namespace carousel {
namespace {

#if defined(__SSE__) || defined(__aarch64__)

/// How many products that are subnormal come out as zeros, of as many ranges as four threads need.
int64_t zeros_of_threads() {
  std::vector<float> x(16 * 16384, 1e-30F);  // kernels::scale takes ranges of 16384
  kernels::scale(static_cast<int64_t>(x.size()), x.data(), 1e-10);
  kernels::scale(static_cast<int64_t>(x.size()), x.data(), 1e10);  // a subnormal argument counts as zero, too
  return std::count(x.begin(), x.end(), 0.F);
}
constexpr int64_t all_zero = 16 * 16384;

class FlushDenormalsInATeam : public testing::Test {
 protected:
  void SetUp() override { set_threads(3); }

 private:
  const test::RestoreThreads restore_;
};

TEST_F(FlushDenormalsInATeam, SubnormalProductsAreZeroInsideInEveryThreadAndNotOutside) {
  EXPECT_EQ(zeros_of_threads(), 0);
  {
    const FlushDenormals scope;
    EXPECT_EQ(zeros_of_threads(), all_zero);
  }
  EXPECT_EQ(zeros_of_threads(), 0);
}

TEST_F(FlushDenormalsInATeam, EndsWithAnException) {
  try {
    const FlushDenormals scope;
    throw std::runtime_error("training failed");
  } catch (const std::runtime_error&) {
    EXPECT_EQ(zeros_of_threads(), 0);
  }
}

TEST_F(FlushDenormalsInATeam, AnInnerScopeDoesNotEndTheOuterOne) {
  const FlushDenormals outer;
  { const FlushDenormals inner; }
  EXPECT_EQ(zeros_of_threads(), all_zero);
}

TEST_F(FlushDenormalsInATeam, ReachesThreadsThatComeLaterAndThoseOfOtherCounts) {
  set_threads(1);
  EXPECT_EQ(zeros_of_threads(), 0);
  {
    const FlushDenormals scope;
    set_threads(4);
    EXPECT_EQ(zeros_of_threads(), all_zero);
    set_threads(2);
  }
  EXPECT_EQ(zeros_of_threads(), 0);
  set_threads(4);
  EXPECT_EQ(zeros_of_threads(), 0);
}

TEST_F(FlushDenormalsInATeam, OtherThreadsOfTheProgramKeepTheirNumbers) {
  int64_t zeros = -1;
  std::promise<void> inside;
  std::thread other([&zeros, started = inside.get_future()] {
    started.wait();
    zeros = zeros_of_threads();
  });
  const FlushDenormals scope;
  inside.set_value();
  other.join();
  EXPECT_EQ(zeros, 0);
}

TEST_F(FlushDenormalsInATeam, LeavesNothingBehindInThreadsThatBlasUsesToo) {
  const std::vector<float> a(256 * 512, 1e-30F), b(512 * 256, 1e-12F);
  {
    const FlushDenormals scope;
    EXPECT_EQ(zeros_of_threads(), all_zero);
  }
  std::vector<float> c(256 * 256, 1);
  kernels::gemm<float>(false, false, 256, 256, 512, 1, a.data(), 512, b.data(), 256, 0, c.data(), 256);
  EXPECT_EQ(std::count(c.begin(), c.end(), 0.F), 0);
}

TEST_F(FlushDenormalsInATeam, ReachesProducts) {
  const std::vector<float> a(256 * 512, 1e-30F), b(512 * 256, 1e-12F);
  const auto zeros = [&a, &b] {
    std::vector<float> c(256 * 256, 1);
    kernels::blocked_product<float>(256, 256, 512, {a.data(), 512}, {b.data(), 256}, nullptr, c.data(), 256);
    return std::count(c.begin(), c.end(), 0.F);
  };
  EXPECT_EQ(zeros(), 0);
  {
    const FlushDenormals scope;
    EXPECT_EQ(zeros(), 256 * 256);
  }
  EXPECT_EQ(zeros(), 0);
}

#if !defined(CAROUSEL_SANITIZED)  // a sanitizer takes its own time

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(FlushDenormalsInATeam, ProductsOfSubnormalNumbersTakeNoLonger) {  // HD-37 (a); its bar
  const Tensor tiny = full({512, 512}, 1e-39), one = ones({512, 512}), half = full({512, 512}, 0.5);
  const FlushDenormals scope;
  double slow = INFINITY, fast = INFINITY;
  for (int i = 0; i < 40; ++i) {  // in turns, and the shortest of each: others use the machine too
    slow = std::min(slow, seconds_of([&] { matmul(tiny, half); }));
    fast = std::min(fast, seconds_of([&] { matmul(one, half); }));
  }
  EXPECT_LE(slow, 1.5 * fast);
}

TEST_F(FlushDenormalsInATeam, NumbersThatFadeAwayTakeNoLonger) {  // HD-37 (c); its bar
  const FlushDenormals scope;
  double subnormal = INFINITY, zero = INFINITY;                                        // times what normal numbers take
  for (int attempt = 0; attempt < 20 && std::max(subnormal, zero) > 1.5; ++attempt) {  // others use the machine too
    Tensor h = ones({1'000'000});
    std::vector<double> times;
    for (int step = 0; step < 2000; ++step) times.push_back(seconds_of([&h] { mul_(h, 0.5); }));
    const auto best = [&times](int first, int last) {
      return *std::min_element(times.begin() + first, times.begin() + last);
    };
    subnormal = std::min(subnormal, best(127, 149) / best(0, 127));  // 2^-149 is the last number before zero
    zero = std::min(zero, best(149, 2000) / best(0, 127));
  }
  EXPECT_LE(subnormal, 1.5);
  EXPECT_LE(zero, 1.5);
}

#endif
#endif

}  // namespace
}  // namespace carousel
