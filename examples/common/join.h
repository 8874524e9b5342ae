#pragma once

#include <string>
#include <string_view>

namespace carousel::examples {

/// The words with `separator` between them. (GCC 12 warns about fmt::join in optimised builds.)
template <class Words>
std::string join(const Words& words, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& word : words) {
    if (!first) text += separator;
    text += word;
    first = false;
  }
  return text;
}

}  // namespace carousel::examples
