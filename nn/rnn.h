#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/recurrent_layer.h>

namespace carousel {

struct RnnConfig {
  std::string nonlinearity = "tanh";
};
Fields fields(RnnConfig& config);

/// The simple recurrent network of Elman (Finding Structure in Time, 1990), in PyTorch's parametrisation:
///   h_t = f(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh),  y_t = h_t,  f = tanh or relu.
/// Parameters: weight_ih [H, D], weight_hh [H, H], bias_ih [H], bias_hh [H], all U(-1/sqrt(H), 1/sqrt(H)).
/// State: h [B, H]. The fused forward, x [B, T, D] -> y [B, T, H], is one node a sequence; it saves x, h, the weights
/// and the masks, and its backward shows a visitor the saved "h" and the total gradient "h", up to 32 steps a call, the
/// last ones first. The constructor throws ValueError for sizes that are not positive and a nonlinearity that there is
/// not.
class Rnn : public RecurrentLayer {
 public:
  Rnn(int64_t input_size, int64_t hidden_size, const RnnConfig& config, Rng& rng, DType dtype = DType::float32);

  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;

 private:
  SequenceResult fused(const recurrent::Input& x, const State& state, const SequenceOptions& options) const override;
  Variable activate(const Variable& z) const;
  RnnConfig config_;
};

}  // namespace carousel
