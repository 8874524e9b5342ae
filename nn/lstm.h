#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/recurrent_layer.h>

namespace carousel {

struct LstmConfig {
  double forget_bias = 1;          ///< at the beginning, once: in bias_ih; bias_hh has none
  bool forget_gate = true;         ///< false: the form of 1997, whose cell only adds
  bool peepholes = false;          ///< gates see the cell (Gers, Schraudolph, Schmidhuber 2002)
  bool layer_norm = false;         ///< of both products and of the cell (Ba, Kiros, Hinton 2016)
  double variational_dropout = 0;  ///< one mask of the state for all steps (Gal, Ghahramani 2016)
};
Fields fields(LstmConfig& config);

/// Long short-term memory (Hochreiter, Schmidhuber 1997) with the forget gate of Gers, Schmidhuber, Cummins (2000):
///   i, f, o = sigmoid(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh),  g = tanh(the same),
///   c_t = f c_{t-1} + i g,   h_t = o tanh(c_t),   y_t = h_t.
/// Gates in PyTorch's order i, f, g, o, without f in the form of 1997. Parameters: weight_ih [4H, D], weight_hh
/// [4H, H], bias_ih [4H], bias_hh [4H]; weights U(-1/sqrt(H), 1/sqrt(H)), biases 0 but for the forget gate's. With
/// peepholes also peephole [3, H] (i and f see c_{t-1}, o sees c_t), zero at first; with layer_norm gain_ih, gain_hh
/// [4H] and gain_c [H], one at first, and shift_c [H], zero. State: h, c, each [B, H].
/// The fused forward, x [B, T, D] -> y [B, T, H], is one node a sequence; it saves x, h, c, the gates, the weights and
/// the masks, and its backward shows a visitor the saved "i", "f" (if there is one), "g", "o", "c" and "h" and the
/// total gradients "h" and "c", up to 32 steps a call, the last ones first. With peepholes, layer_norm or a variational
/// dropout that acts in this pass the layer runs unrolled. The constructor throws ValueError for sizes that are not
/// positive and what is outside a field's range.
class Lstm : public RecurrentLayer {
 public:
  Lstm(int64_t input_size, int64_t hidden_size, const LstmConfig& config, Rng& rng, DType dtype = DType::float32);

  int64_t state_size(int64_t) const override { return 2 * output_size(); }
  std::vector<StateShape> state_shapes(int64_t batch) const override;
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;

 private:
  bool has_kernel(const SequenceOptions& options) const override;
  SequenceResult fused(const recurrent::Input& x, const State& state, const SequenceOptions& options) const override;
  int64_t gates() const { return config_.forget_gate ? 4 : 3; }
  Variable before_gates(const Variable& x_t, const Variable& h) const;

  LstmConfig config_;
  Variable peephole_;                              // undefined without peepholes
  Variable gain_ih_, gain_hh_, gain_c_, shift_c_;  // undefined without layer norm
};

}  // namespace carousel
