#pragma once

#include <carousel/nn/character_model.h>
#include <carousel/nn/sampling.h>

#include <functional>
#include <span>
#include <vector>

namespace carousel {

/// A token as it is drawn.
struct GeneratedToken {
  int64_t row;  ///< of the texts that are written side by side
  int64_t token;
  double log_probability;  ///< what the model itself gave it, in nats; 0 unless asked for
};

struct GenerateOptions {
  int64_t length = 400;  ///< tokens to add to the prompt
  SamplingOptions sampling = {};
  bool log_probabilities = false;  ///< whether on_token is told them, for a softmax more a token
  /// Called with each new token as soon as it is drawn; when it returns false, its row ends.
  std::function<bool(const GeneratedToken& token)> on_token = {};
};

/// Continues `prompt` and returns the new tokens. Records no graph, uses no dropout, and carries the state: one step
/// a token. A model with a context looks at the last tokens that fit into it: once the text is longer, each step reads
/// them all again, since each has moved to another position. After an empty prompt the first token is drawn with equal
/// chances from the whole vocabulary. Throws ValueError for a negative length and what `sample` throws, IndexError for
/// a prompt token outside the vocabulary; all before the first token.
std::vector<int64_t> generate(const CharacterModel& model, std::span<const int64_t> prompt,
                              const GenerateOptions& options, Rng& rng);

/// The same for several texts side by side, one for each generator: one step of the model a token of all. A row is
/// what `generate` makes with its generator, but for the last bits of the logits, since a product of several rows may
/// add in another order.
std::vector<std::vector<int64_t>> generate_rows(const CharacterModel& model, std::span<const int64_t> prompt,
                                                const GenerateOptions& options, std::span<Rng> rngs);

}  // namespace carousel
