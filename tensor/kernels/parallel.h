#pragma once

#include <carousel/tensor/kernels/float_mode.h>
#include <carousel/tensor/kernels/threads.h>

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace carousel::kernels {

/// Calls `body(number, size)` on `threads` threads, which may wait for one another in it by OpenMP's constructs.
/// Always the same team: libgomp ends threads that a smaller one does not need, and makes new ones for the next. All
/// take subnormal numbers for what the caller takes them, as long as they work for it. `body` must not throw, and
/// therefore not allocate.
template <class Body>
void parallel_team(int threads, const Body& body) {
  const FloatMode mode = FloatMode::of_this_thread();
#pragma omp parallel num_threads(threads)
  {
    mode.apply();
    body(omp_get_thread_num(), omp_get_num_threads());
    // BLAS, and others' regions, use the same threads. What they had before may be what they were born with.
    if (omp_get_thread_num() > 0) FloatMode::precise().apply();
  }
}

/// Calls `body(task)` for 0, 1, ... tasks - 1 on all threads; those that are left over do nothing.
template <class Body>
void parallel_tasks(int64_t tasks, const Body& body) {
  parallel_team(thread_count(), [&](int, int) {
#pragma omp for schedule(static) nowait
    for (int64_t task = 0; task < tasks; ++task) body(task);
  });
}

/// Calls `body(begin, end)` for [0, grain), [grain, 2 grain), ... up to `count`, on several threads. The ranges do not
/// depend on the thread count, so what each range yields does not either. A few ranges, or a caller that is itself one
/// of several threads, cost no OpenMP. `body` must not throw.
template <class Body>
void parallel_ranges(int64_t count, int64_t grain, const Body& body) {
  constexpr int64_t worth_waking = 4;
  const int64_t ranges = (count + grain - 1) / grain;
  const auto run = [&](int64_t range) { body(range * grain, std::min(count, (range + 1) * grain)); };
  if (ranges < worth_waking || thread_count() == 1) {
    for (int64_t range = 0; range < ranges; ++range) run(range);
  } else {
    parallel_tasks(ranges, run);
  }
}

/// Elements of a range of an elementwise kernel: some microseconds of work.
inline constexpr int64_t elementwise_grain = 16384;

}  // namespace carousel::kernels
