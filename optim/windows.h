#pragma once

#include <carousel/tensor/random.h>

namespace carousel {

/// One training example: `targets` are `inputs` shifted by one token, both int64 [B, T], views of time-major memory,
/// so that everything downstream runs time-major without a copy.
struct Window {
  Tensor inputs;
  Tensor targets;
  bool starts = false;  ///< each row begins a new text: start from the initial state, carry nothing
};

enum class WindowOrder {
  contiguous,  ///< B long streams side by side; the state carries from window to window
  random,      ///< B places drawn afresh for every window; each starts from the initial state
};

/// Cuts a text into training windows, for ever.
///
/// Contiguous: N tokens make B streams of L = (N - 1) / B steps; stream b reads tokens b L .. b L + L. A pass is
/// L / T windows (what is left of a stream is not read); then the streams wrap, and the window says `starts`.
class TrainingWindows {
 public:
  /// tokens int64 [N]. Throws ShapeError; ValueError unless N >= B T + 1, naming both.
  TrainingWindows(const Tensor& tokens, int64_t rows, int64_t steps, WindowOrder order);

  /// The next window. Draws from `rng` in random order only.
  Window next(Rng& rng);

  int64_t windows_per_pass() const { return windows_per_pass_; }
  int64_t position() const { return position_; }  ///< windows handed out so far: what a checkpoint keeps
  void seek(int64_t position);                    ///< throws ValueError when negative

 private:
  int64_t rows_;
  int64_t steps_;
  WindowOrder order_;
  Tensor tokens_;
  Tensor streams_;  // [L + 1, B]: row t is what all streams read at step t
  int64_t windows_per_pass_;
  int64_t position_ = 0;
};

}  // namespace carousel
