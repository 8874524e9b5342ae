#pragma once

#include <carousel/nn/character_model.h>

#include <functional>
#include <span>
#include <vector>

namespace carousel {

/// How one token is drawn from logits.
struct SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0 takes the largest, without a draw; finite, >= 0
  int64_t top_k = 0;       ///< only the k largest may be drawn (of equal ones, the first); 0, or V and more: all
};

/// One index drawn from softmax(logits / temperature), logits [V]. Throws ValueError for options outside their range
/// and for logits that hold NaN, or no finite number, or +inf.
int64_t sample(const Tensor& logits, const SamplingOptions& options, Rng& rng);

struct GenerateOptions {
  int64_t length = 400;  ///< tokens to add to the prompt
  SamplingOptions sampling = {};
  /// Called with each new token as soon as it is drawn; when it returns false, generation ends.
  std::function<bool(int64_t token)> on_token = {};
};

/// Continues `prompt` and returns the new tokens. Records no graph, uses no dropout, and carries the state: one step
/// a token. A model with a context looks at the last tokens that fit into it: once the text is longer, each step reads
/// them all again, since each has moved to another position. After an empty prompt the first token is drawn with equal
/// chances from the whole vocabulary. Throws ValueError for a negative length and what `sample` throws, IndexError for
/// a prompt token outside the vocabulary; all before the first token.
std::vector<int64_t> generate(const CharacterModel& model, std::span<const int64_t> prompt,
                              const GenerateOptions& options, Rng& rng);

}  // namespace carousel
