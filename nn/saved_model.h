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

/// Puts weights, configuration and vocabulary into `archive`, and makes the model of an archive again. Making throws
/// FormatError naming the file when a part is missing or does not fit.
void save_model(const CharacterModel& model, const std::string& vocabulary, Archive& archive);
SavedModel make_model(const Archive& archive);

/// Copies the weights of `archive` into `model`. Throws FormatError, listing missing, unexpected and mismatched names
/// and both configurations; then nothing was changed.
void load_weights(const Archive& archive, CharacterModel& model);

/// The model of a checkpoint, or of the checkpoint in a folder. Throws IoError, FormatError.
SavedModel load(const std::string& directory_or_file);

}  // namespace carousel
