#pragma once

#include <cstdint>
#include <optional>
#include <variant>

/// Learning rates as functions of the step, which counts from 0. `rate` throws ValueError for a schedule that makes no
/// sense, whatever the step, and for a negative step: a trainer that calls rate(0) before it starts has checked it.
///
/// Each may begin with a linear warm-up of some steps, which its own steps include: step t < warmup has (t + 1) /
/// (warmup + 1) of the rate that the schedule has at its start, so that the first update moves already.
namespace carousel {

struct ConstantRate {
  double value;
  int64_t warmup = 0;  ///< steps

  double rate(int64_t step) const;
};

/// `initial` until step `first`, times `factor` there, and again every `every` steps after it, but never below `floor`.
/// torch-rnn halves every 5 epochs: {.factor = 0.5, .every = 5 epochs}. char-rnn multiplies by 0.97 after each epoch
/// from the tenth: {.factor = 0.97, .every = 1 epoch, .first = 10 epochs}.
struct StepRate {
  double initial;
  double factor;                      ///< in (0, 1]
  int64_t every;                      ///< steps, at least 1
  std::optional<int64_t> first = {};  ///< the first step with a smaller rate, at least 1; unless set, `every`
  double floor = 0;                   ///< in [0, initial]
  int64_t warmup = 0;                 ///< steps, at most `first`

  double rate(int64_t step) const;
};

/// initial factor^(t / every), t counted from the end of the warm-up, but never below `floor`.
struct ExponentialRate {
  double initial;
  double factor;       ///< in (0, 1]
  int64_t every = 1;   ///< steps that it takes to reach it, at least 1
  double floor = 0;    ///< in [0, initial]
  int64_t warmup = 0;  ///< steps

  double rate(int64_t step) const;
};

/// Warm-up to `peak`, then a cosine to `floor` at step `end`, then constant. nanoGPT's schedule.
struct WarmupCosine {
  double peak;
  double floor = 0;    ///< in [0, peak]
  int64_t warmup = 0;  ///< steps
  int64_t end;         ///< steps, at least warmup

  double rate(int64_t step) const;
};

/// Any of them, chosen at run time.
using Schedule = std::variant<ConstantRate, StepRate, ExponentialRate, WarmupCosine>;
double rate(const Schedule& schedule, int64_t step);

}  // namespace carousel
