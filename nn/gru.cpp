#include <carousel/nn/gru.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/shape.h>

namespace carousel {

Fields fields(GruConfig& config) {
  return {{.name = "reset_after",
           .target = &config.reset_after,
           .help = "reset gate after the recurrent product (PyTorch's form); false: before"}};
}

Gru::Gru(int64_t input_size, int64_t hidden_size, const GruConfig& config, Rng& rng, DType dtype)
    : RecurrentLayer("Gru", input_size, hidden_size, 3, Biases::uniform, rng, dtype), config_(config) {}

StepResult Gru::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Gru", *this, x_t, state, options);
  const Variable h = reset_rows(state, options.reset)["h"];
  const int64_t hidden = output_size();
  const std::vector<int64_t> two_and_one{2 * hidden, hidden}, halves{hidden, hidden};
  const Variables x_side = split(linear(x_t, weight_ih_, bias_ih_), two_and_one, 1);
  const Variables weight = split(weight_hh_, two_and_one, 0), bias = split(bias_hh_, two_and_one, 0);
  const Variables gates = split(sigmoid(x_side[0] + linear(h, weight[0], bias[0])), halves, 1);
  const Variable &r = gates[0], &z = gates[1];
  const Variable recurrent =
      config_.reset_after ? r * linear(h, weight[1], bias[1]) : linear(r * h, weight[1], bias[1]);
  const Variable n = tanh(x_side[1] + recurrent);
  const Variable next = (1.0 - z) * n + z * h;
  return {.output = next, .state = {{"h", next}}};
}

}  // namespace carousel
