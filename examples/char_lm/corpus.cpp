#include "char_lm/corpus.h"

#include <cstdio>

#include "common/stories.h"

namespace carousel::examples {

namespace {

std::string text_of(const std::string& path) {
  if (path.empty()) return make_stories().text;
  TextFile file = read_text(path);
  for (const std::string& notice : file.notices) fmt::print(stderr, "note: {}\n", notice);
  return std::move(file.text);
}

}  // namespace

Corpus load_corpus(const std::string& path, const std::string& split, const std::optional<std::string>& symbols) {
  const SplitRule rule = parse_split(split);
  const std::string text = text_of(path);
  const Vocabulary vocabulary(symbols ? *symbols : text);
  const Tensor tokens = vocabulary.encode(text);
  const Split sizes = split_sizes(rule, tokens.numel());
  const int64_t test = sizes.train + sizes.validation;
  return {.vocabulary = vocabulary,
          .train = tokens.slice(0, {.start = 0, .stop = sizes.train}),
          .validation = tokens.slice(0, {.start = sizes.train, .stop = test}),
          .test = tokens.slice(0, {.start = test})};
}

}  // namespace carousel::examples
