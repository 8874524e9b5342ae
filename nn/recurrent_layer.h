#pragma once

#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/random.h>

namespace carousel {
namespace recurrent {
struct Input;
}

/// What the recurrent layers in PyTorch's parametrisation share: G gates, each of which gets
///   W_ih x_t + b_ih + W_hh h_{t-1} + b_hh,
/// the state h [B, H] and, as output, the new h. Parameters: weight_ih [G H, D], weight_hh [G H, H], bias_ih [G H],
/// bias_hh [G H]; a gate is a block of H rows. A whole sequence goes through `fused`, unless it is too short for
/// a kernel. Of a Lookup whose table is shorter than the sequence, W_ih is multiplied with the table, and that and the
/// tokens are saved for backward instead of x.
class RecurrentLayer : public SequenceLayer {
 public:
  int64_t input_size() const override { return weight_ih_.size(1); }
  int64_t output_size() const override { return weight_hh_.size(1); }
  DType dtype() const override { return weight_ih_.dtype(); }
  int64_t state_size(int64_t) const override { return output_size(); }
  std::vector<StateShape> state_shapes(int64_t batch) const override {
    return {{"h", {batch, output_size()}, dtype()}};
  }
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;
  SequenceResult forward_lookup(const Lookup& x, const State& state,
                                const SequenceOptions& options = {}) const override;

 protected:
  enum class Biases { zero, uniform };
  /// Registers the parameters: the weights U(-1/sqrt(H), 1/sqrt(H)), and so the biases if they are not zero. `layer` is
  /// for errors: throws ValueError for sizes that are not positive.
  RecurrentLayer(std::string_view layer, int64_t input_size, int64_t hidden_size, int64_t gates, Biases biases,
                 Rng& rng, DType dtype);

  /// Whether the layer's kernel computes what `step` does in such a pass.
  virtual bool has_kernel(const SequenceOptions&) const { return true; }
  /// The layer over a sequence of at least one step, in one node; everything has been checked.
  virtual SequenceResult fused(const recurrent::Input& x, const State& state, const SequenceOptions& options) const = 0;

  Variable weight_ih_, weight_hh_, bias_ih_, bias_hh_;

 private:
  /// Whether a sequence of `steps` goes through `fused`.
  bool fuses(int64_t steps, const SequenceOptions& options) const;

  std::string name_;
};

}  // namespace carousel
