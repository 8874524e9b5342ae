#include "char_lm/passes.h"

#include <carousel/optim/accumulate.h>

#include <cmath>

namespace carousel::examples {

LossResult loss_of(const CharacterModel& model, const Pass& pass, State& state, SequenceOptions options) {
  const Window& window = pass.window;
  if (window.starts) state = model.initial_state(window.inputs.size(0));
  options.dropout_key = pass.dropout_key;
  options.final_state = !model.context();  // with a context the next window begins afresh
  return model.loss(window.inputs, window.targets, state, options);
}

double run_passes(const CharacterModel& model, const std::vector<Pass>& passes, State& state, bool recompute) {
  int64_t of_all = 0;
  for (const Pass& pass : passes) of_all += counted_targets(pass.window.targets);
  SequenceOptions options;
  options.recompute = recompute;
  double mean = 0;
  for (const Pass& pass : passes) {
    const LossResult result = loss_of(model, pass, state, options);
    const double loss = result.loss.value().item();
    check<NonFiniteError>(std::isfinite(loss), "train", "loss must be finite: got {}", std::abs(loss));
    mean += accumulate(result.loss, {counted_targets(pass.window.targets), of_all});
    state = model.carry(result.state);  // the past stays, its gradient ends
  }
  return mean;
}

}  // namespace carousel::examples
