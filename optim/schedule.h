#pragma once

#include <cstdint>

/// Learning rates as functions of the step, which counts from 0. `rate` throws ValueError for a schedule that makes no
/// sense, whatever the step, and for a negative step: a trainer that calls rate(0) before it starts has checked it.
namespace carousel {

struct ConstantRate {
  double value;

  double rate(int64_t step) const;
};

/// Linear warm-up to `peak`, then a cosine to `floor` at step `end`, then constant. The first update already moves:
/// rate(0) = peak / (warmup + 1) when there is a warm-up. nanoGPT's schedule.
struct WarmupCosine {
  double peak;
  double floor = 0;    ///< in [0, peak]
  int64_t warmup = 0;  ///< steps
  int64_t end;         ///< steps, at least warmup

  double rate(int64_t step) const;
};

}  // namespace carousel
