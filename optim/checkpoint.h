#pragma once

#include <carousel/nn/saved_model.h>
#include <carousel/optim/optimizer.h>
#include <carousel/tensor/random.h>

#include <string>

namespace carousel {

/// Everything besides weights and optimiser that a resumed run continues from.
struct TrainingState {
  int64_t step = 0;      ///< updates made
  int64_t position = 0;  ///< of TrainingWindows
  Rng rng{0};
  State carried = {};         ///< the recurrent state after the last window
  std::string options = {};   ///< the program's own options, as text of its choice
  std::string progress = {};  ///< what else the program must know to go on, likewise
};

/// Model, vocabulary, optimiser and training state as one archive. Throws ValueError as save_model does.
Archive make_checkpoint(const CharacterModel& model, const std::string& vocabulary, const Optimizer& optimizer,
                        const TrainingState& training);
/// Writes it to `path` (see save_archive). Throws IoError too.
void save_checkpoint(const std::string& path, const CharacterModel& model, const std::string& vocabulary,
                     const Optimizer& optimizer, const TrainingState& training);

/// The training state alone, for who wants to know how far a run is. Throws FormatError naming the file.
TrainingState training_state(const Archive& archive);

/// Throws FormatError naming the file unless the carried state has the names, shapes and types of `like`.
void check_carried(const Archive& archive, const State& like);

/// Restores what save_checkpoint wrote into a model and an optimiser of the same making, and returns the training
/// state. Throws FormatError naming the file; then nothing was changed.
TrainingState resume(const Archive& archive, CharacterModel& model, Optimizer& optimizer);

}  // namespace carousel
