#include <carousel/nn/recurrent_layer.h>

#include <carousel/nn/init.h>
#include <carousel/nn/recurrent.h>

namespace carousel {

RecurrentLayer::RecurrentLayer(std::string_view layer, int64_t input_size, int64_t hidden_size, int64_t gates,
                               Biases biases, Rng& rng, DType dtype)
    : name_(layer) {
  check<ValueError>(input_size > 0 && hidden_size > 0, layer, "sizes must be positive: got {} and {}", input_size,
                    hidden_size);
  const int64_t width = gates * hidden_size;
  const auto drawn = [hidden_size, dtype, &rng](const Shape& shape) {
    return init::fan_in_uniform(shape, hidden_size, rng, dtype);
  };
  const auto bias = [biases, width, dtype, &drawn] {
    return biases == Biases::zero ? init::constant({width}, 0, dtype) : drawn({width});
  };
  weight_ih_ = add_parameter("weight_ih", drawn({width, input_size}), Decay::yes);
  weight_hh_ = add_parameter("weight_hh", drawn({width, hidden_size}), Decay::yes);
  bias_ih_ = add_parameter("bias_ih", bias(), Decay::no);
  bias_hh_ = add_parameter("bias_hh", bias(), Decay::no);
}

bool RecurrentLayer::fuses(int64_t steps, const SequenceOptions& options) const {
  // Laying W_hh out for a kernel costs more than one step.
  const bool worth_it = steps > 1 || (steps == 1 && grad_enabled());
  return worth_it && has_kernel(options);
}

SequenceResult RecurrentLayer::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence(name_, *this, x, state, options);
  return fuses(x.size(1), options) ? fused({x}, state, options) : unroll(x, state, options);
}

SequenceResult RecurrentLayer::forward_lookup(const Lookup& x, const State& state,
                                              const SequenceOptions& options) const {
  if (!x.is_shorter()) return SequenceLayer::forward_lookup(x, state, options);
  check_sequence(name_, *this, x, state, options);
  if (!fuses(x.tokens.size(1), options)) return SequenceLayer::forward_lookup(x, state, options);
  return fused({x.zero_unread(options.lengths), x.tokens}, state, options);
}

}  // namespace carousel
