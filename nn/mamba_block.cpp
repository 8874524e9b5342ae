#include <carousel/nn/mamba_block.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/nn/functional.h>

namespace carousel {

MambaBlock::MambaBlock(const LayerShape& shape, const MambaConfig& config, Rng& rng)
    : dropout_(shape.dropout),
      norm_(shape.hidden_size, {}, shape.dtype),
      mixer_(shape.hidden_size, config, shape.depth, rng, shape.dtype) {
  add_child("norm", norm_);
  add_child("mixer", mixer_);
}

StepResult MambaBlock::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("MambaBlock", *this, x_t, state, options);
  const StepResult mixed = mixer_.step(norm_.forward(x_t), state, options);
  return {x_t + dropout_in_training(*this, mixed.output, dropout_, options.dropout_key, options.time), mixed.state};
}

SequenceResult MambaBlock::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("MambaBlock", *this, x, state, options);
  const Variable stream = zero_after_end(x, options.lengths);
  const SequenceResult mixed = mixer_.forward(norm_.forward(stream), state, options);
  const Variable y = stream + dropout_in_training(*this, mixed.output, dropout_, options.dropout_key);
  return {zero_after_end(y, options.lengths), mixed.state};
}

}  // namespace carousel
