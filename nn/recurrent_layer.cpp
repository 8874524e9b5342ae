#include <carousel/nn/recurrent_layer.h>

#include <carousel/nn/init.h>

namespace carousel {

RecurrentLayer::RecurrentLayer(std::string_view layer, int64_t input_size, int64_t hidden_size, int64_t gates,
                               Biases biases, Rng& rng, DType dtype) {
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

}  // namespace carousel
