#pragma once

#include <vector>

#include "char_lm/corpus.h"

namespace carousel::examples {

/// Nats per token that one gets without a model: log V, and those of tables of counts.
struct Baselines {
  double uniform;
  std::vector<double> ngrams;  ///< of 1, 2, .. tokens, counted on the training part (Ngrams)
};

/// Of `scored`, a held-out part of the corpus. Of long texts the first 4 million tokens are counted, and the first
/// million is scored.
Baselines baselines_of(const Corpus& corpus, const Tensor& scored);
/// "uniform 4.174, 1-gram 3.326, .." in nats, and the best in bits.
std::string to_string(const Baselines& baselines);

}  // namespace carousel::examples
