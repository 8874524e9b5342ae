#pragma once

#include <carousel/nn/sequence_layer.h>

#include <memory>
#include <vector>

namespace carousel {

/// Layers one above the other: x [B, T, D] of the lowest -> y [B, T, H] of the highest, with dropout on what passes
/// between them in training, under a dropout key (not after the last; every layer, step and row has a mask of its own).
/// Its State holds each layer's under "0.", "1.", ...; a visitor is shown every layer, the highest first, under the
/// names "layers.0", "layers.1", ... With `recompute`, backward keeps of every layer but the last no more than its
/// input.
class Stack : public SequenceLayer {
 public:
  /// Throws ValueError when empty, ShapeError when a layer's input is not the one below's output.
  Stack(std::vector<std::unique_ptr<SequenceLayer>> layers, double dropout);

  int64_t input_size() const override;
  int64_t output_size() const override;
  DType dtype() const override;
  int64_t state_size(int64_t t) const override;
  int64_t multiply_adds(int64_t t) const override;
  std::vector<StateShape> state_shapes(int64_t batch) const override;
  StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const override;
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const override;
  SequenceResult forward_lookup(const Lookup& x, const State& state,
                                const SequenceOptions& options = {}) const override;

 private:
  /// The layers in turn; x is a Variable or a Lookup.
  template <class Input>
  SequenceResult run(const Input& x, const State& state, const SequenceOptions& options) const;
  /// What layer `layer` hands on: its output, with dropout unless it is the last.
  Variable between(const Variable& output, size_t layer, const std::optional<uint64_t>& key, int64_t first_step) const;

  std::vector<std::unique_ptr<SequenceLayer>> layers_;
  double dropout_;
};

}  // namespace carousel
