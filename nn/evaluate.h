#pragma once

#include <carousel/nn/character_model.h>

#include <functional>

namespace carousel {

struct EvaluateOptions {
  /// Contiguous pieces read side by side. 1 is the exact reading; with more, each piece starts from the state that
  /// `warm_up` tokens before it leave, which buys much speed and costs what a state knows from before those.
  int64_t streams = 1;
  int64_t window = 1024;  ///< tokens of a stream per call: memory, not the result, depends on it
  int64_t warm_up = 0;    ///< tokens that every piece but the first reads unscored; at most a piece's length
  /// Called before every window; what it throws ends the reading.
  std::function<void()> before_window = {};
};

/// Mean nats per token over `tokens` (int64 [N], N >= 2), read once, in order, the state carried: every token after
/// the first is scored exactly once. A model with a context reads consecutive windows of that length, each from the
/// initial state: the first token of a window is guessed from one symbol alone. Records no graph, uses no dropout,
/// draws from no generator. Throws ShapeError, ValueError for fewer than streams + 1 tokens, or pieces shorter than the
/// warm-up.
double evaluate(const CharacterModel& model, const Tensor& tokens, const EvaluateOptions& options = {});

/// How a long text of `tokens` tokens is read fast and the loss still is that of the exact reading for any model that
/// forgets in a thousand tokens: in 16 pieces, or fewer where they would be short.
EvaluateOptions quick_reading(int64_t tokens);

}  // namespace carousel
