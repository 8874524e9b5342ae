#pragma once

#include <optional>
#include <string>

#include "common/recall.h"
#include "common/stories.h"
#include "common/text.h"

namespace carousel::examples {

/// A text as tokens, cut into its parts.
struct Corpus {
  Vocabulary vocabulary;
  Tensor train;  ///< int64 [N]
  Tensor validation;
  Tensor test;
  std::string fingerprint;              ///< SHA-256 of the text as it was read, in hexadecimal
  std::optional<Stories> stories = {};  ///< when they are the text
};

/// Reads the file, or makes the embedded stories when the path is empty, and says on stderr what was changed on the
/// way in. The vocabulary is that of the whole text unless `symbols` holds another; then a symbol that it lacks is a
/// ValueError.
Corpus load_corpus(const std::string& path, const std::string& split, const std::optional<std::string>& symbols = {});

/// How often the model knows what the stories of the held-out part recall; nothing when the text is another.
std::optional<Recall> recall_on_validation(const CharacterModel& model, const Corpus& corpus);

}  // namespace carousel::examples
