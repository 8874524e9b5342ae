#pragma once

#include <carousel/nn/sequence_layer.h>

#include <memory>

namespace carousel {

/// Two layers over one sequence, the second reading it from its end (Schuster, Paliwal 1997):
///   y_t = [forward_t; backward_t],   x [B, T, D] -> y [B, T, Hf + Hb].
/// It needs the whole sequence and so has no step. Parameters and State stand under "forward" and "backward"; the
/// backward layer's final state is the one after it has read step 0. Nothing is saved besides what the two layers save.
///
/// Options of `forward`, for the second layer:
/// - lengths: it begins at each row's own last step, lengths[b] - 1, and never sees the padding.
/// - reset: true at step t says that a new text begins there, which cuts both ways: the forward layer forgets before
///   step t, the backward layer before step t - 1, the text before's last. So reset[b, 0] means nothing to it.
/// - dropout_key: each layer's own is made from it, so that their masks differ.
/// - visitor: hears "forward" and "backward" (after the path); the steps of "backward" are in the order of its reading.
class Bidirectional : public Module {
 public:
  /// Throws ValueError when a layer is missing or their dtypes differ, ShapeError when their input sizes do.
  Bidirectional(std::unique_ptr<SequenceLayer> forward, std::unique_ptr<SequenceLayer> backward);

  int64_t input_size() const { return forward_->input_size(); }
  int64_t output_size() const { return forward_->output_size() + backward_->output_size(); }
  DType dtype() const { return forward_->dtype(); }
  State initial_state(int64_t batch) const;  ///< of both layers: "forward.h", .., "backward.h", ..

  /// Throws ShapeError, ValueError or (for a missing entry of the state) IndexError naming what does not fit.
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const;

 private:
  std::unique_ptr<SequenceLayer> forward_, backward_;
};

}  // namespace carousel
