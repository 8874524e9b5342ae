#pragma once

#include "workloads.h"

namespace carousel::bench {

struct StepCost {
  double seconds;       ///< of the median step
  uint64_t peak_bytes;  ///< the most that tensors held at once: weights, moments, gradients, and what backward needs
};

/// Trains for `seconds`, three steps at least, after one that does not count.
StepCost step_cost(const Workload& workload, double seconds);

}  // namespace carousel::bench
