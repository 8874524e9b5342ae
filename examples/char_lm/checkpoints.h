#pragma once

#include <carousel/nn/archive.h>

#include <optional>
#include <string>
#include <vector>

#include "char_lm/options.h"
#include "char_lm/progress.h"

namespace carousel::examples {

/// The checkpoint at a path that a person gave, a file or the folder of a run. Throws IoError naming `option` when
/// there is none, and as load_archive does.
Archive open_checkpoint(std::string_view option, const std::string& path);

/// Where a run writes its checkpoint, and where it keeps that of the smallest validation loss.
std::string checkpoint_in(const std::string& folder);
std::string best_checkpoint_in(const std::string& folder);
/// All that a folder holds, the likeliest to go on from first: the last, the kept ones from the newest on, the best.
std::vector<std::string> checkpoints_in(const std::string& folder);
/// Throws ValueError when training into options.out would destroy a run without having been told to.
void check_nothing_is_lost(const TrainOptions& options);

/// The options of the run that wrote a checkpoint. Throws FormatError.
TrainOptions options_of(const Archive& archive);

/// What its run remembered, see Progress. Throws FormatError.
Progress progress_of(const Archive& archive);
/// A digest of everything that a resumed run depends on, in hexadecimal: weights, optimiser, generator, position,
/// carried state, vocabulary, text, and the options that decide what a step computes. Not of paths, threads, times, or
/// of what is only reported.
std::string state_digest(const Archive& archive);

/// Puts the checkpoint at `path` under another name, whole at every moment.
void keep_as(const std::string& path, const std::string& other);
/// Removes the others of a folder, which an earlier run left. Throws IoError.
void keep_last_only(const std::string& folder);
/// Keeps the last checkpoint of a folder as that of step `step`, and of those kept the `count` newest.
void keep_latest(const std::string& folder, int64_t step, int64_t count);

/// The folder that --resume names, or --out beside nanoGPT's --init-from resume; empty when there is neither.
std::string folder_to_resume(const std::vector<std::string>& arguments, const Config& config);
/// The options of the run in a folder, with its newest checkpoint that can be read as `start`; a damaged one is told
/// of. Without any the options say only which folder was asked for.
TrainOptions resumed_options(const std::string& folder);
/// Throws ValueError for options that a resumed run cannot change, and IoError when there is nothing to resume.
void check_resumed(TrainOptions& options, const Given& given);

/// Loads what --init-from names, and takes from it what the command line leaves open: text, split, sizes and the
/// options of training. Throws ValueError when the command line gives another size.
void start_from_checkpoint(TrainOptions& options, const Given& given);

}  // namespace carousel::examples
