#pragma once

#include <carousel/tensor/kernels/threads.h>

#include <algorithm>
#include <cstdint>

namespace carousel::kernels {

/// Calls `body(begin, end)` for [0, grain), [grain, 2 grain), ... up to `count`, on several threads. The ranges do not
/// depend on the thread count, so what each range yields does not either. A few ranges, or a caller that is itself one
/// of several threads, cost no OpenMP. `body` must not throw.
template <class Body>
void parallel_ranges(int64_t count, int64_t grain, const Body& body) {
  constexpr int64_t worth_waking = 4;
  const int64_t ranges = (count + grain - 1) / grain;
  const int workers = ranges < worth_waking ? 1 : static_cast<int>(std::min<int64_t>(thread_count(), ranges));
  if (workers == 1) {
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(count, begin + grain));
    return;
  }
#pragma omp parallel for schedule(static) num_threads(workers)
  for (int64_t range = 0; range < ranges; ++range) body(range * grain, std::min(count, (range + 1) * grain));
}

/// Elements of a range of an elementwise kernel: some microseconds of work.
inline constexpr int64_t elementwise_grain = 16384;

}  // namespace carousel::kernels
