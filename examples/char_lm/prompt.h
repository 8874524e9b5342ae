#pragma once

#include <string>
#include <vector>

#include "common/text.h"

namespace carousel::examples {

/// What a text is to go on from, as it was given: `prompt`, the content of `file`, or FILE when `prompt` is FILE:path,
/// nanoGPT's way. Throws ValueError when both are given, and as read_text does.
std::string prompt_text(const std::string& prompt, const std::string& file);

/// What became of a prompt.
struct Prompt {
  std::string text;  ///< that the vocabulary can spell
  std::vector<std::string> notices = {};
};

/// The prompt with its unknown symbols dealt with. "error" throws ValueError naming the first and its position; "skip"
/// leaves them out; "nearest" takes the symbol's other case, or what the C library's transliteration makes of it ("é"
/// is "e", a dash "-"), and leaves out what neither helps.
Prompt known_prompt(const std::string& text, const Vocabulary& vocabulary, const std::string& policy);

}  // namespace carousel::examples
