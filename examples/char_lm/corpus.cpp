#include "char_lm/corpus.h"

#include <carousel/nn/digest.h>

#include "common/options.h"

namespace carousel::examples {

namespace {

std::string read_with_notices(const std::string& path) {
  TextFile file = read_text(path);
  for (const std::string& notice : file.notices) tell("note: " + notice);
  return std::move(file.text);
}

}  // namespace

Corpus load_corpus(const std::string& path, const std::string& split, const std::optional<std::string>& symbols) {
  const SplitRule rule = parse_split(split);
  std::optional<Stories> stories;
  if (path.empty()) stories = make_stories();
  const std::string text = stories ? stories->text : read_with_notices(path);
  const Vocabulary vocabulary = symbols ? Vocabulary::from_symbols(*symbols) : Vocabulary(text);
  const Tensor tokens = vocabulary.encode(text);
  const Split sizes = split_sizes(rule, tokens.numel());
  const int64_t test = sizes.train + sizes.validation;
  return {.vocabulary = vocabulary,
          .train = tokens.slice(0, {.start = 0, .stop = sizes.train}),
          .validation = tokens.slice(0, {.start = sizes.train, .stop = test}),
          .test = tokens.slice(0, {.start = test}),
          .fingerprint = sha256_hex(text),
          .stories = std::move(stories)};
}

std::optional<Recall> recall_on_validation(const CharacterModel& model, const Corpus& corpus) {
  if (!corpus.stories) return std::nullopt;
  const Recall recall = measure_recall(model, corpus.vocabulary, *corpus.stories, corpus.train.numel());
  return recall.asked > 0 ? std::optional(recall) : std::nullopt;
}

}  // namespace carousel::examples
