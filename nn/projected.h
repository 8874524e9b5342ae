#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/sequence_layer.h>

#include <memory>

namespace carousel {

/// A layer behind a linear map, for one whose input is as wide as its output: layer(W x), x [B, T, D]. Children
/// projection (weight [H, D], no bias) and layer. State, visitor and errors are the layer's.
class Projected : public SequenceLayer {
 public:
  /// Throws ValueError unless the input size is positive.
  Projected(int64_t input_size, std::unique_ptr<SequenceLayer> layer, Rng& rng);

  int64_t input_size() const override { return input_size_; }
  int64_t output_size() const override { return layer_->output_size(); }
  DType dtype() const override { return layer_->dtype(); }
  int64_t state_size(int64_t t) const override { return layer_->state_size(t); }
  int64_t multiply_adds(int64_t t) const override;
  std::vector<StateShape> state_shapes(int64_t batch) const override { return layer_->state_shapes(batch); }
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;

 private:
  int64_t input_size_;
  std::unique_ptr<SequenceLayer> layer_;
  Linear projection_;
};

}  // namespace carousel
