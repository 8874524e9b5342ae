#pragma once

#include <carousel/optim/checkpoint.h>

#include <string>
#include <vector>

#include "char_lm/passes.h"

namespace carousel::examples {

/// Where a run keeps what a step with a loss or gradient that is not finite began with.
std::string bundle_in(const std::string& folder, int64_t step);

/// Adds to a checkpoint of before the step what went into it, what was wrong, and statistics of all weights and of the
/// gradients that there are.
void add_to_bundle(const std::vector<Pass>& passes, const std::string& failure, const CharacterModel& model,
                   Archive& checkpoint);

/// The passes of a bundle. Throws FormatError.
std::vector<Pass> passes_of(const Archive& bundle);
/// What was wrong, and the statistics, as text. Throws FormatError.
const std::string& failure_of(const Archive& bundle);
const std::string& statistics_of(const Archive& bundle);

}  // namespace carousel::examples
