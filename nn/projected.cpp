#include <carousel/nn/projected.h>

namespace carousel {

Projected::Projected(int64_t input_size, std::unique_ptr<SequenceLayer> layer, Rng& rng)
    : input_size_(input_size),
      layer_(std::move(layer)),
      projection_(input_size, layer_->input_size(), {.bias = false}, rng, layer_->dtype()) {
  add_child("projection", projection_);
  add_child("layer", *layer_);
}

int64_t Projected::multiply_adds(int64_t t) const {
  return input_size_ * layer_->input_size() + layer_->multiply_adds(t);
}

StepResult Projected::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Projected", *this, x_t, state, options);
  return layer_->step(projection_.forward(x_t), state, options);
}

SequenceResult Projected::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("Projected", *this, x, state, options);
  return layer_->forward(projection_.forward(zero_after_end(x, options.lengths)), state, options);
}

}  // namespace carousel
