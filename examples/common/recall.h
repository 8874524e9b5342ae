#pragma once

#include <carousel/nn/character_model.h>

#include <string>

#include "common/stories.h"
#include "common/text.h"

namespace carousel::examples {

/// How often a model knew the word that its story recalls.
struct Recall {
  int64_t right = 0;
  int64_t asked = 0;
  double chance = 0;  ///< share that guessing among the candidates gets right

  double share() const { return asked > 0 ? static_cast<double>(right) / static_cast<double>(asked) : 0; }
};

/// Reads the stories from byte `start` on, in order, the state carried, and asks at each of the first `count` answers
/// whether the right word's first letter is the likeliest among those of the candidates. Stories that begin before
/// `start` are not asked about. Records no graph, draws from no generator.
Recall measure_recall(const CharacterModel& model, const Vocabulary& vocabulary, const Stories& stories, int64_t start,
                      int64_t count = 200);

/// "recall: 41 % of 200 answers right (chance 12.5 %)"
std::string to_string(const Recall& recall);

}  // namespace carousel::examples
