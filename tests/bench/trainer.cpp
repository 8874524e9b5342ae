#include "trainer.h"

#include <carousel/tensor/random.h>

namespace carousel::bench {

Trainer::Trainer(const Workload& workload, int64_t batches)
    : batch_(workload.batch),
      recompute_(workload.recompute),
      rng_(1),
      model_(make_model(workload, workload.steps, rng_)),
      optimizer_(model_.parameters(), {.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1}) {
  for (int64_t i = 0; i < batches; ++i) {
    batches_.push_back(rng_.integers({workload.steps + 1, workload.batch}, 0, workload.vocabulary));
  }
}

double Trainer::step() {
  const Tensor tokens = batches_[turn_++ % batches_.size()].transpose(0, 1);  // [B, T + 1], time-major
  const Tensor inputs = tokens.slice(1, {0, -1}), targets = tokens.slice(1, {1});
  optimizer_.zero_grad();  // first of all: the old gradients need not lie beside what forward makes
  const SequenceOptions options{.recompute = recompute_, .final_state = false};
  const Variable loss = model_.loss(inputs, targets, model_.initial_state(batch_), options).loss;
  loss.backward();
  optimizer_.step(1e-3, {.clip_norm = 1.0});
  return loss.value().item();
}

}  // namespace carousel::bench
