#pragma once

#include <carousel/nn/archive.h>

#include <optional>
#include <string>

#include "char_lm/options.h"

namespace carousel::examples {

/// The checkpoint at a path that a person gave, a file or the folder of a run. Throws IoError naming `option` when
/// there is none, and as load_archive does.
Archive open_checkpoint(std::string_view option, const std::string& path);

/// Where a run writes its checkpoint.
std::string checkpoint_in(const std::string& folder);
bool holds_run(const std::string& folder);
/// Throws ValueError when training into options.out would destroy a run without having been told to.
void check_nothing_is_lost(const TrainOptions& options);

/// The options of the run that wrote a checkpoint. Throws FormatError.
TrainOptions options_of(const Archive& archive);

/// Loads what --init-from names, and takes from it what the command line leaves open: text, split, sizes and the
/// options of training. Throws ValueError when the command line gives another size.
void start_from_checkpoint(TrainOptions& options, const Given& given);

}  // namespace carousel::examples
