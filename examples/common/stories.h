#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carousel::examples {

struct StoryOptions {
  int64_t bytes = 1'000'000;  ///< at least; the last story is whole
  int64_t distance = 100;     ///< characters between the first mention and the recalled word, at least
  uint64_t seed = 1;
};

/// A word that only somebody who remembers the beginning of its story can know.
struct StoryAnswer {
  std::string_view kind;  ///< "name", "place" or "colour"
  std::string_view word;
  int64_t first_mention;  ///< byte where the word begins in the story's opening
  int64_t position;       ///< byte where it begins at the end of the story
  /// The words that could have stood here, `word` among them, equally likely and each with another first letter: the
  /// character at `position` alone tells whether a model remembered.
  const std::vector<std::string_view>* candidates;
};

struct Stories {
  std::string text;                  ///< ASCII; stories are separated by an empty line
  std::vector<StoryAnswer> answers;  ///< one a story, in order
};

/// Short simple stories from a small grammar, in which something named at the beginning (who, where, which colour) is
/// recalled at the end. Between the two are sentences that hold no candidate word; as many as the distance asks for,
/// so the true distance exceeds it by less than one sentence, or is that of the shortest story (about 50) when the
/// distance is smaller. The text is a pure function of seed and distance, on every platform; with fewer bytes it is a
/// prefix.
/// Throws ValueError unless bytes > 0 and distance >= 0.
Stories make_stories(const StoryOptions& options = {});

/// One JSON record an answer and line: kind, word, first_mention, position, candidates.
std::string answers_to_json_lines(const Stories& stories);

}  // namespace carousel::examples
