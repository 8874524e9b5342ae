#include <carousel/nn/recurrent_layer.h>

#include <carousel/nn/init.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {

RecurrentLayer::RecurrentLayer(std::string_view layer, int64_t input_size, int64_t hidden_size, int64_t gates,
                               Biases biases, Rng& rng, DType dtype) {
  check<ValueError>(input_size > 0 && hidden_size > 0, layer, "sizes must be positive: got {} and {}", input_size,
                    hidden_size);
  const int64_t width = gates * hidden_size;
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto bias = [biases, width, bound, dtype, &rng] {
    return biases == Biases::zero ? zeros({width}, dtype) : init::uniform({width}, bound, rng, dtype);
  };
  weight_ih_ = add_parameter("weight_ih", init::uniform({width, input_size}, bound, rng, dtype), Decay::yes);
  weight_hh_ = add_parameter("weight_hh", init::uniform({width, hidden_size}, bound, rng, dtype), Decay::yes);
  bias_ih_ = add_parameter("bias_ih", bias(), Decay::no);
  bias_hh_ = add_parameter("bias_hh", bias(), Decay::no);
}

}  // namespace carousel
