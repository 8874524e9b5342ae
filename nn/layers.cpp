#include <carousel/nn/layers.h>

#include <carousel/autograd/index.h>
#include <carousel/autograd/matmul.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/init.h>

#include <cmath>

namespace carousel {
namespace {

void check_norm(std::string_view layer, int64_t size, double eps) {
  check<ValueError>(size > 0, layer, "size must be positive: got {}", size);
  check<ValueError>(std::isfinite(eps) && eps > 0, layer, "eps must be finite and > 0: got {}", eps);
}

}  // namespace

Linear::Linear(int64_t input_size, int64_t output_size, const Config& config, Rng& rng, DType dtype) {
  check<ValueError>(input_size > 0 && output_size > 0, "Linear", "sizes must be positive: got {} and {}", input_size,
                    output_size);
  const Shape matrix{output_size, input_size};
  const auto& deviation = config.deviation;
  weight_ = add_parameter(
      "weight",
      deviation ? init::normal(matrix, *deviation, rng, dtype) : init::fan_in_uniform(matrix, input_size, rng, dtype),
      Decay::yes);
  if (!config.bias) return;
  bias_ = add_parameter(
      "bias",
      deviation ? init::constant({output_size}, 0, dtype) : init::fan_in_uniform({output_size}, input_size, rng, dtype),
      Decay::no);
}

Variable Linear::forward(const Variable& x) const { return linear(x, weight_, bias_); }

Embedding::Embedding(int64_t vocabulary_size, int64_t embedding_size, const Config& config, Rng& rng, DType dtype) {
  check<ValueError>(vocabulary_size > 0 && embedding_size > 0, "Embedding", "sizes must be positive: got {} and {}",
                    vocabulary_size, embedding_size);
  weight_ = add_parameter("weight", init::normal({vocabulary_size, embedding_size}, config.deviation, rng, dtype),
                          Decay::yes);
}

Variable Embedding::forward(const Tensor& tokens) const { return take_rows(weight_, tokens); }

LayerNorm::LayerNorm(int64_t size, const Config& config, DType dtype) : config_(config) {
  check_norm("LayerNorm", size, config.eps);
  weight_ = add_parameter("weight", init::constant({size}, 1, dtype), Decay::no);
  bias_ = add_parameter("bias", init::constant({size}, 0, dtype), Decay::no);
}

Variable LayerNorm::forward(const Variable& x) const { return layer_norm(x, weight_, bias_, config_.eps); }

RmsNorm::RmsNorm(int64_t size, const Config& config, DType dtype) : config_(config) {
  check_norm("RmsNorm", size, config.eps);
  weight_ = add_parameter("weight", init::constant({size}, 1, dtype), Decay::no);
}

Variable RmsNorm::forward(const Variable& x) const { return rms_norm(x, weight_, config_.eps); }

Dropout::Dropout(double probability) : probability_(probability) {
  check<ValueError>(probability >= 0 && probability < 1, "Dropout", "probability must be in [0, 1): got {}",
                    probability);
}

Variable Dropout::forward(const Variable& x, Rng& rng) const {
  if (!training() || probability_ == 0) return x;
  return dropout(x, probability_, rng.next_u64());
}

}  // namespace carousel
