#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/sequence_layer.h>

#include <memory>

namespace carousel {

struct CausalSelfAttentionConfig {
  int64_t heads = 4;  ///< A; must divide the size
  int64_t depth = 1;  ///< layers of the model that it is in, whose residual stream its output joins
};

/// Causal multi-head self-attention with a cache of keys and values, as in GPT-2 (Radford and others 2019; Vaswani and
/// others 2017, section 3.2):
///   q_t, k_t, v_t = W_attn x_t + b_attn, cut into A heads,
///   y_t = W_proj [softmax_j(q_t . k_j / sqrt(H / A)) v_j, summed over j <= t, heads side by side] + b_proj.
/// Parameters: c_attn.weight [3H, H] (q, k, v), c_attn.bias [3H], c_proj.weight [H, H], c_proj.bias [H]; weights
/// N(0, 0.02), of c_proj N(0, 0.02 / sqrt(2 depth)), biases 0. State: keys and values [B, A, S, H / A] of the S steps
/// so far, and the count visible [B, S], 1 where the row may still look at that step: what lies before a reset, or
/// behind the row's end, is zero and not visible. A step knows nothing of its position.
///
/// The fused forward, x [B, T, H] -> y [B, T, H], is scaled_dot_product_attention between two linear maps: memory is
/// linear in T. Its backward shows a visitor the saved "weights" [1, B, A, S_t] and the total gradients "keys" and
/// "values" [1, B, A, S_t, H / A], a step a call. Without gradients the cache grows in place: a
/// step writes its own entry. The constructor throws ValueError unless sizes are positive and the heads divide the
/// size; calls also throw ShapeError when keys, values and visible are not of one length.
class CausalSelfAttention : public SequenceLayer {
 public:
  CausalSelfAttention(int64_t size, const CausalSelfAttentionConfig& config, Rng& rng, DType dtype = DType::float32);

  int64_t input_size() const override { return size_; }
  int64_t output_size() const override { return size_; }
  DType dtype() const override { return dtype_; }
  int64_t state_size(int64_t t) const override { return 2 * size_ * t; }
  int64_t multiply_adds(int64_t t) const override { return SequenceLayer::multiply_adds(t) + 2 * size_ * t; }
  std::vector<StateShape> state_shapes(int64_t batch) const override;
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;

  /// What forward would weigh the steps with: [B, A, T, S], zero where a step does not look. Throws as forward does.
  Tensor weights(const Variable& x, const State& state, const SequenceOptions& options = {}) const;

 private:
  struct Heads;
  Heads project(const Variable& x) const;
  Variable merge(const Variable& heads) const;

  int64_t size_, heads_;
  DType dtype_;
  std::unique_ptr<Linear> c_attn_, c_proj_;
};

}  // namespace carousel
