#pragma once

#include <optional>
#include <string>

#include "common/text.h"

namespace carousel::examples {

/// A text as tokens, cut into its parts.
struct Corpus {
  Vocabulary vocabulary;
  Tensor train;  ///< int64 [N]
  Tensor validation;
  Tensor test;
};

/// Reads the file, or makes the embedded stories when the path is empty, and says on stderr what was changed on the
/// way in. The vocabulary is that of the whole text unless `symbols` holds another; then a symbol that it lacks is a
/// ValueError.
Corpus load_corpus(const std::string& path, const std::string& split, const std::optional<std::string>& symbols = {});

}  // namespace carousel::examples
