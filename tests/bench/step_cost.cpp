#include "step_cost.h"

#include <carousel/tensor/storage.h>

#include "measure.h"
#include "trainer.h"

namespace carousel::bench {

StepCost step_cost(const Workload& workload, double seconds) {
  Trainer trainer(workload, 2);  // few batches: they are no part of what a model needs
  trainer.step();
  reset_storage_peak();
  const std::vector<double> times = call_times(seconds, [&trainer] { trainer.step(); });
  return {median(times), storage_stats().peak_bytes};
}

}  // namespace carousel::bench
