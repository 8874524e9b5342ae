#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/random.h>

namespace carousel {

struct DecayingMemoryConfig {
  double decay = 0.9;    ///< lambda, at the beginning when it is learned
  bool learned = false;  ///< a lambda of its own for each channel, trained
};
Fields fields(DecayingMemoryConfig& config);

/// The smallest memory there is, and the smallest example of a layer: what was seen fades by lambda a step.
///   h_t = lambda h_{t-1} + W x_t,   y_t = h_t.
/// The gradient of the state fades by the same lambda: d h_t / d h_{t-k} = lambda^k. Parameters: weight [H, D],
/// U(-1/sqrt(D), 1/sqrt(D)); when lambda is learned also logit [H], lambda = sigmoid(logit), not decayed. State: h
/// [B, H]. The forward is one node for all steps, and shows a visitor what it does: see linear_recurrence.h. The
/// constructor throws ValueError for sizes that are not positive and a decay outside [0, 1], or outside (0, 1) when it
/// is learned.
class DecayingMemory : public SequenceLayer {
 public:
  DecayingMemory(int64_t input_size, int64_t hidden_size, const DecayingMemoryConfig& config, Rng& rng,
                 DType dtype = DType::float32);

  int64_t input_size() const override { return weight_.size(1); }
  int64_t output_size() const override { return weight_.size(0); }
  DType dtype() const override { return weight_.dtype(); }
  int64_t state_size(int64_t) const override { return output_size(); }
  std::vector<StateShape> state_shapes(int64_t batch) const override;
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;
  SequenceResult forward_lookup(const Lookup& x, const State& state,
                                const SequenceOptions& options = {}) const override;

 private:
  Variable lambda() const;  // [H]

  DecayingMemoryConfig config_;
  Variable weight_;
  Variable logit_;  // undefined unless learned
};

}  // namespace carousel
