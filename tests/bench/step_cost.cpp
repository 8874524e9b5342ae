#include "step_cost.h"

#include <carousel/tensor/storage.h>

#include "measure.h"
#include "trainer.h"

namespace carousel::bench {

StepCost step_cost(const Workload& workload, double seconds) {
  Trainer trainer(workload, 2);  // few batches: they are no part of what a model needs
  trainer.step();
  reset_storage_peak();
  std::vector<double> times;
  for (const auto start = Clock::now(); times.size() < 3 || seconds_since(start) < seconds;) {
    const auto before = Clock::now();
    trainer.step();
    times.push_back(seconds_since(before));
  }
  return {median(times), storage_stats().peak_bytes};
}

}  // namespace carousel::bench
