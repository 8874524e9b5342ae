#pragma once

#include <carousel/nn/character_model.h>
#include <carousel/optim/adam.h>

#include <vector>

#include "workloads.h"

namespace carousel::bench {

/// A training loop. One step is what a user runs: forward, mean cross-entropy over B*T targets, backward, clipping to
/// norm 1, AdamW. The tokens are random, `batches` of them in turn, so that nothing is learnt by heart: it is the
/// arithmetic that is timed.
class Trainer {
 public:
  explicit Trainer(const Workload& workload, int64_t batches = 256);
  double step();  ///< returns the loss before the update
  int64_t parameter_count() const { return model_.parameter_count(); }

 private:
  int64_t batch_;
  bool recompute_;
  Rng rng_;
  CharacterModel model_;
  AdamW optimizer_;
  std::vector<Tensor> batches_;  // int64 [T + 1, B]
  size_t turn_ = 0;
};

}  // namespace carousel::bench
