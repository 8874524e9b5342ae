#include "kernels_common.h"

#include <carousel/tensor/kernels/elman.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "count_allocations.h"

namespace carousel::kernels {
namespace {

std::set<std::string> living_threads() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) names.insert(entry.path());
  return names;
}

/// A kernel that takes this many ranges.
void run_ranges(int64_t ranges) {
  std::vector<float> x(ranges * 16384);
  exp(static_cast<int64_t>(x.size()), x.data(), x.data());
  EXPECT_EQ(std::count(x.begin(), x.end(), 1.F), static_cast<int64_t>(x.size()));
}

/// Runs `body` with five threads and expects it to use those that have worked once, and no others.
void expect_one_team(const std::function<void()>& body) {
  const int before = thread_count();
  set_thread_count(5);
  run_ranges(5);
  const std::set<std::string> team = living_threads();
  body();
  EXPECT_EQ(living_threads(), team);
  set_thread_count(before);
}

TEST(Parallel, FewRangesDoNotEndTheOtherThreads) {
  expect_one_team([] {
    for (const int64_t ranges : {4, 5, 9, 4, 1, 6, 4}) run_ranges(ranges);
  });
}

/// A sequence with resets, long enough for several threads, of zeros.
void run_elman(int64_t batch) {
  const int64_t steps = 64, hidden = 64;
  const auto reset = std::make_unique<bool[]>(steps * batch);
  reset[batch] = reset[2 * batch - 1] = true;
  std::vector<float> w(hidden * hidden), state(batch * hidden), last(batch * hidden), h(steps * batch * hidden);
  elman_forward({{.steps = steps, .batch = batch, .reset = reset.get()}, hidden}, Nonlinearity::tanh,
                PackedMatrix<float>(hidden, hidden, w.data(), 1, hidden), state.data(), h.data(), last.data());
}

TEST(Parallel, SmallBatchesDoNotEndTheOtherThreads) {
  expect_one_team([] {
    for (const int64_t batch : {4, 10, 6, 8, 4}) run_elman(batch);
  });
}

TEST(Parallel, NothingIsAllocatedInsideARegion) {  // where std::bad_alloc would end the program
  expect_one_team([] {
    const uint64_t before = test::allocations_of_other_threads();
    run_elman(10);
    EXPECT_EQ(test::allocations_of_other_threads(), before);
  });
}

}  // namespace
}  // namespace carousel::kernels
