#pragma once

#include <carousel/nn/archive.h>
#include <carousel/nn/character_model.h>

#include <memory>
#include <string>

namespace carousel {

/// A model ready to run, with the symbols that its tokens stand for.
struct SavedModel {
  std::unique_ptr<CharacterModel> model;
  std::string vocabulary;  ///< token i is the i-th code point of this UTF-8 text
};

/// The checkpoint of a folder: DIR -> DIR/checkpoint.carousel; any other path names the file itself.
std::string checkpoint_path(const std::string& directory_or_file);

/// Puts weights, configuration and vocabulary into `archive`. Throws ValueError unless `vocabulary` has a code point
/// for each symbol of the model.
void save_model(const CharacterModel& model, const std::string& vocabulary, Archive& archive);

/// The model of an archive. Throws FormatError naming the file when a part is missing or does not fit the others. What
/// the file only claims costs no memory: the tensors that it holds are compared with its configuration first.
SavedModel make_model(const Archive& archive);

/// Copies the weights of `archive` into `model`. Throws FormatError, listing missing, unexpected and mismatched names
/// and both configurations; then nothing was changed.
void load_weights(const Archive& archive, CharacterModel& model);

/// The model of a checkpoint file, or of the one in a folder: load("run") reads run/checkpoint.carousel. Throws IoError
/// with path and system reason when it cannot be read, FormatError as load_archive and make_model do.
SavedModel load(const std::string& directory_or_file);

}  // namespace carousel
