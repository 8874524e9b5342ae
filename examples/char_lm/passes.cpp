#include "char_lm/passes.h"

#include <carousel/autograd/elementwise.h>

#include <cmath>

namespace carousel::examples {

double run_passes(const CharacterModel& model, const std::vector<Pass>& passes, State& state, bool recompute) {
  const double share = 1 / static_cast<double>(passes.size());
  double mean = 0;
  for (const Pass& pass : passes) {
    const Window& window = pass.window;
    if (window.starts) state = model.initial_state(window.inputs.size(0));
    SequenceOptions options;
    options.dropout_key = pass.dropout_key;
    options.recompute = recompute;
    options.final_state = !model.context();  // with a context the next window begins afresh
    const LossResult result = model.loss(window.inputs, window.targets, state, options);
    const double loss = result.loss.value().item();
    if (!std::isfinite(loss)) throw NonFiniteError(fmt::format("[train] loss must be finite: got {}", std::abs(loss)));
    if (passes.size() == 1) {
      result.loss.backward();
    } else {
      (result.loss * share).backward();
    }
    state = model.carry(result.state);  // the past stays, its gradient ends
    mean += loss * share;
  }
  return mean;
}

}  // namespace carousel::examples
