#include "common/recall.h"

#include <algorithm>

namespace carousel::examples {

namespace {

// The first letter, of those that the candidates begin with, that the model expects most.
char guess(const std::vector<float>& logits, const Vocabulary& vocabulary, const StoryAnswer& answer) {
  const auto logit = [&](std::string_view word) {
    const int64_t token = vocabulary.encode(word.substr(0, 1)).item<int64_t>();
    return logits[static_cast<size_t>(token)];
  };
  const auto& words = *answer.candidates;
  return std::max_element(words.begin(), words.end(), [&](auto a, auto b) { return logit(a) < logit(b); })->front();
}

}  // namespace

Recall measure_recall(const CharacterModel& model, const Vocabulary& vocabulary, const Stories& stories, int64_t start,
                      int64_t count) {
  const NoGrad no_grad;
  const std::string_view text = stories.text;
  State state = model.initial_state(1);
  Recall recall;
  for (const StoryAnswer& answer : stories.answers) {
    if (answer.first_mention < start) continue;
    if (recall.asked == count) break;
    if (const auto context = model.context()) {  // only so much of the story is seen, from there afresh
      start = std::max(start, answer.position - *context);
      state = model.initial_state(1);
    }
    const auto first = static_cast<size_t>(start);
    const Tensor read = vocabulary.encode(text.substr(first, static_cast<size_t>(answer.position) - first));
    const ModelResult result = model.forward(read.unsqueeze(0), state);
    const Tensor logits = result.logits.value().select(1, -1).reshape({-1}).to(DType::float32);
    state = result.state;
    start = answer.position;
    recall.right += guess(logits.to_vector<float>(), vocabulary, answer) == answer.word.front() ? 1 : 0;
    recall.asked += 1;
    recall.chance += 1.0 / static_cast<double>(answer.candidates->size());
  }
  if (recall.asked > 0) recall.chance /= static_cast<double>(recall.asked);
  return recall;
}

std::string to_string(const Recall& recall) {
  return fmt::format("recall: {:.3g} % of {} answers right (chance {:.3g} %)", 100 * recall.share(), recall.asked,
                     100 * recall.chance);
}

}  // namespace carousel::examples
