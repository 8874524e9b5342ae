#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/selective_scan.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/random.h>

#include <utility>

namespace carousel {

struct MambaConfig {
  int64_t state_size = 16;  ///< N, numbers that a channel remembers
  int64_t conv_width = 4;   ///< W, inputs that the convolution sees
  int64_t expand = 2;       ///< channels for each feature of the model
  bool gate = true;         ///< false: the scan's output goes on as it is ("no gate" in the paper's Table 1)
  bool selective = true;    ///< false: B, C and dt do not depend on the input (S4 in the same table)
};
Fields fields(MambaConfig& config);

/// The mixer of Mamba, a selective state-space layer (Gu, Dao 2023, Section 3), without norm and residual. With D
/// features, I = expand D channels, N states of each and R = ceil(D / 16):
///   u', z = W_in x_t,   u = SiLU(conv(u')),   r, B, C = W_x u,   dt = softplus(W_dt r + b_dt),
///   h = exp(dt A) h + dt B u,   y = C h + D u,   A = -exp(A_log),   output = W_out (y SiLU(z)),
/// where conv runs over the last W inputs of each channel on its own (nn/causal_conv.h), and the line of h is that of
/// nn/selective_scan.h.
///
/// Parameters, by the published names: A_log [I, N] = log(1 .. N), D [I] = 1; in_proj.weight [2I, D] (u' first; without
/// gate [I, D]), conv1d.weight [I, 1, W], conv1d.bias [I], x_proj.weight [R + 2N, I], dt_proj.weight [I, R],
/// dt_proj.bias [I], out_proj.weight [D, I]. Weights are U(-1/sqrt(n), 1/sqrt(n)), n the numbers that a sum runs over;
/// out_proj.weight is divided by sqrt(depth), the number of layers. dt_proj.bias is softplus^-1 of a dt that is
/// log-uniform in [0.001, 0.1] (the published floor, 0.0001, lies below). A_log, D and biases do not decay.
///
/// Without `selective` it is S4D-real: in place of x_proj and dt_proj it has B [I, N] = 1, C [I, N] from N(0, 1) and
/// dt_bias [I], made as dt_proj.bias, with dt = softplus(dt_bias); B and dt_bias do not decay, as in S4.
///
/// State: conv [B, I, W-1], the last u', oldest first; h [B, I, N]. `forward` is fused where it matters: convolution
/// and scan are one node each. A visitor sees what those two show. The constructor throws ValueError for a size or
/// depth that is not positive, or a field outside its range.
class Mamba : public SequenceLayer {
 public:
  Mamba(int64_t size, const MambaConfig& config, int64_t depth, Rng& rng, DType dtype = DType::float32);

  int64_t input_size() const override;
  int64_t output_size() const override { return input_size(); }
  DType dtype() const override;
  int64_t state_size(int64_t) const override { return channels() * (config_.state_size + config_.conv_width - 1); }
  /// Beside the weights, of which B and C are among the parameters unless selective: the state fades, takes in, is
  /// read.
  int64_t multiply_adds(int64_t t) const override {
    return SequenceLayer::multiply_adds(t) + (config_.selective ? 3 : 1) * channels() * config_.state_size;
  }
  std::vector<StateShape> state_shapes(int64_t batch) const override;
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;

 private:
  /// A child module of a weight and perhaps a bias.
  struct Part : Module {
    void add(const Tensor& initial) { weight = add_parameter("weight", initial, Decay::yes); }
    void add_bias(const Tensor& initial) { bias = add_parameter("bias", initial, Decay::no); }
    Variable apply(const Variable& x) const;  ///< x W^T + b

    Variable weight, bias;
  };

  int64_t channels() const { return config_.expand * input_size(); }
  Variable conv_weight() const;  ///< [I, W]
  /// W_in x, [.., I] each; z is undefined without gate.
  std::pair<Variable, Variable> in_parts(const Variable& x) const;
  /// The terms of the scan of u [.., I]; dt, B and C have u's leading axes where they are selective.
  ScanTerms scan_terms(const Variable& u) const;
  Variable gated(const Variable& y, const Variable& z) const;

  MambaConfig config_;
  Variable a_log_, d_;
  Variable b_, c_, dt_bias_;  // defined unless selective
  Part in_proj_, conv1d_, x_proj_, dt_proj_, out_proj_;
};

}  // namespace carousel
