#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/recurrent_layer.h>

namespace carousel {

struct GruConfig {
  bool reset_after = true;  ///< the reset gate acts after the recurrent product, as in cuDNN and PyTorch; false: before
};
Fields fields(GruConfig& config);

/// Gated recurrent unit (Cho and others 2014):
///   r, z = sigmoid(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh),
///   n = tanh(W_in x_t + b_in + r (W_hn h_{t-1} + b_hn)),       or with reset_after = false
///   n = tanh(W_in x_t + b_in + W_hn (r h_{t-1}) + b_hn),
///   h_t = (1 - z) n + z h_{t-1},   y_t = h_t.
/// Gates in PyTorch's order r, z, n. Parameters: weight_ih [3H, D], weight_hh [3H, H], bias_ih [3H], bias_hh [3H], all
/// U(-1/sqrt(H), 1/sqrt(H)). State: h [B, H]. The fused forward, x [B, T, D] -> y [B, T, H], is one node a
/// sequence; it saves x, h, the gates, W_hn h_{t-1} + b_hn or r h_{t-1}, the weights and the masks, and its backward
/// shows a visitor the saved "r", "z", "n" and "h" and the total gradient "h", up to 32 steps a call, the last ones
/// first. The constructor throws ValueError for sizes that are not positive.
class Gru : public RecurrentLayer {
 public:
  Gru(int64_t input_size, int64_t hidden_size, const GruConfig& config, Rng& rng, DType dtype = DType::float32);

  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;

 private:
  SequenceResult fused(const recurrent::Input& x, const State& state, const SequenceOptions& options) const override;
  GruConfig config_;
};

}  // namespace carousel
