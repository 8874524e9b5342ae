#pragma once

#include <carousel/nn/character_model.h>

namespace carousel {

struct EvaluateOptions {
  /// Contiguous pieces read side by side. 1 is the exact reading; with more, each piece starts from the zero state,
  /// which costs quality at its first tokens and buys speed.
  int64_t streams = 1;
  int64_t window = 1024;  ///< tokens of a stream per call: memory, not the result, depends on it
};

/// Mean nats per token over `tokens` (int64 [N], N >= 2), read once, in order, the state carried: every token after
/// the first is scored exactly once. A model with a context reads consecutive windows of that length, each from the
/// initial state: the first token of a window is guessed from one symbol alone. Records no graph, uses no dropout,
/// draws from no generator. Throws ShapeError, ValueError for fewer than streams + 1 tokens.
double evaluate(const CharacterModel& model, const Tensor& tokens, const EvaluateOptions& options = {});

}  // namespace carousel
