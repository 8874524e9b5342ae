#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/mamba.h>
#include <carousel/nn/registry.h>

namespace carousel {

/// A Mamba mixer on a residual stream, pre-norm (Gu, Dao 2023): y = x + mamba(rms_norm(x)). Children norm, mixer. In
/// training, under a dropout key, dropout on the branch. State and visitor are those of the mixer. The constructor
/// throws ValueError for sizes that are not positive.
class MambaBlock : public SequenceLayer {
 public:
  MambaBlock(const LayerShape& shape, const MambaConfig& config, Rng& rng);

  int64_t input_size() const override { return mixer_.input_size(); }
  int64_t output_size() const override { return mixer_.output_size(); }
  DType dtype() const override { return mixer_.dtype(); }
  int64_t state_size(int64_t t) const override { return mixer_.state_size(t); }
  int64_t multiply_adds(int64_t t) const override { return mixer_.multiply_adds(t); }
  std::vector<StateShape> state_shapes(int64_t batch) const override { return mixer_.state_shapes(batch); }
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;

 private:
  double dropout_;
  RmsNorm norm_;
  Mamba mixer_;
};

}  // namespace carousel
