#include "char_lm/baselines.h"

#include <algorithm>
#include <cmath>

#include "char_lm/report.h"
#include "common/ngram.h"

namespace carousel::examples {

Baselines baselines_of(const Corpus& corpus, const Tensor& scored) {
  constexpr int64_t most_counted = 4'000'000, most_scored = 1'000'000, order = 5;
  const auto first = [](const Tensor& tokens, int64_t most) {
    return tokens.slice(0, {.stop = std::min(most, tokens.numel())});
  };
  const int64_t vocabulary = corpus.vocabulary.size();
  const Ngrams counts(first(corpus.train, most_counted), vocabulary, order);
  return {.uniform = std::log(static_cast<double>(vocabulary)), .ngrams = counts.losses(first(scored, most_scored))};
}

std::string to_string(const Baselines& baselines) {
  std::string text = fmt::format("without a model, nats per character: uniform {:.4f}", baselines.uniform);
  for (size_t n = 0; n < baselines.ngrams.size(); ++n) {
    text += fmt::format(", {}-gram {:.4f}", n + 1, baselines.ngrams[n]);
  }
  const double best = *std::min_element(baselines.ngrams.begin(), baselines.ngrams.end());
  return text + fmt::format(" (the best: {:.4f} bits)", bits(best));
}

}  // namespace carousel::examples
