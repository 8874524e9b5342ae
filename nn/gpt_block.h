#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/self_attention.h>

namespace carousel {

struct GptConfig {
  int64_t heads = 4;
};
Fields fields(GptConfig& config);

/// The block of GPT-2 (Radford and others 2019), pre-norm on a residual stream:
///   x <- x + attention(layer_norm(x)),   y = x + W_proj gelu(W_fc layer_norm(x)),
/// gelu in its tanh form, H wide between blocks and 4H inside the second branch. Children ln_1, attn, ln_2, c_fc [4H,
/// H], c_proj [H, 4H]; weights N(0, 0.02^2), of what is added to the stream N(0, 0.02^2 / (2 depth)), biases 0. In
/// training, under a dropout key, dropout on both branches (not on the attention weights). State and visitor are those
/// of attention. The constructor throws ValueError for sizes that are not positive and heads that do not divide H.
class GptBlock : public SequenceLayer {
 public:
  GptBlock(const LayerShape& shape, const GptConfig& config, Rng& rng);

  int64_t input_size() const override { return attn_.input_size(); }
  int64_t output_size() const override { return attn_.output_size(); }
  DType dtype() const override { return attn_.dtype(); }
  int64_t state_size(int64_t t) const override { return attn_.state_size(t); }
  int64_t multiply_adds(int64_t t) const override;
  std::vector<StateShape> state_shapes(int64_t batch) const override { return attn_.state_shapes(batch); }
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;

  /// What the block's attention would weigh the steps with: [B, heads, T, S]. Throws as forward does.
  Tensor weights(const Variable& x, const State& state, const SequenceOptions& options = {}) const;

 private:
  Variable mlp(const Variable& x) const;
  Variable add(const Variable& x, const Variable& branch, const std::optional<uint64_t>& key, int64_t first_step) const;

  double dropout_;
  LayerNorm ln_1_, ln_2_;
  CausalSelfAttention attn_;
  Linear c_fc_, c_proj_;
};

}  // namespace carousel
