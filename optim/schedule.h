#pragma once

#include <cstdint>

namespace carousel {

/// Linear warm-up to `peak`, then a cosine to `floor` at step `end`, then constant. Steps count from 0; the first
/// update already moves: rate(0) = peak / (warmup + 1) when there is a warm-up. nanoGPT's schedule.
struct WarmupCosine {
  double peak;
  double floor = 0;
  int64_t warmup = 0;  ///< steps
  int64_t end;         ///< steps; throws ValueError on use when warmup > end

  double rate(int64_t step) const;
};

}  // namespace carousel
