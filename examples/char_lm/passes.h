#pragma once

#include <carousel/nn/character_model.h>
#include <carousel/optim/windows.h>

#include <vector>

namespace carousel::examples {

/// One window on its way through the model in training.
struct Pass {
  Window window;
  uint64_t dropout_key;
};

/// Forward of one pass from `state`, or from the initial state where the window begins a text.
LossResult loss_of(const CharacterModel& model, const Pass& pass, State& state, SequenceOptions options = {});

/// Forward and backward of the passes of one step, whose gradients add up to that of their mean loss, which is
/// returned. The state goes from window to window, and is that after the last in the end. Throws NonFiniteError for a
/// loss that is not finite. `recompute`: SequenceOptions::recompute.
double run_passes(const CharacterModel& model, const std::vector<Pass>& passes, State& state, bool recompute = false);

}  // namespace carousel::examples
