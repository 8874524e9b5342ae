#include <carousel/nn/lstm.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

// x W^T, normalised.
Variable normalized_product(const Variable& x, const Variable& weight, const Variable& gain) {
  const Variable none = zeros(gain.shape(), gain.dtype());
  return layer_norm(linear(x, weight, {}), gain, none);
}

}  // namespace

Fields fields(LstmConfig& config) {
  return {{.name = "forget_bias",
           .target = &config.forget_bias,
           .help = "bias of the forget gate at the beginning",
           .minimum = -100,
           .maximum = 100},
          {.name = "forget_gate", .target = &config.forget_gate, .help = "false: the form of 1997"},
          {.name = "peepholes", .target = &config.peepholes, .help = "gates see the cell"},
          {.name = "layer_norm", .target = &config.layer_norm, .help = "normalise the products and the cell"},
          {.name = "variational_dropout",
           .target = &config.variational_dropout,
           .help = "dropout of the state, one mask for all steps",
           .minimum = 0,
           .maximum = 0.99}};
}

Lstm::Lstm(int64_t input_size, int64_t hidden_size, const LstmConfig& config, Rng& rng, DType dtype)
    : RecurrentLayer("Lstm", input_size, hidden_size, config.forget_gate ? 4 : 3, Biases::zero, rng, dtype),
      config_(config) {
  check_fields("Lstm", fields(config_));
  if (config_.forget_gate) {
    bias_ih_.value().slice(0, {.start = hidden_size, .stop = 2 * hidden_size}).fill_(config_.forget_bias);
  }
  const int64_t width = gates() * hidden_size;
  if (config_.peepholes) peephole_ = add_parameter("peephole", zeros({3, hidden_size}, dtype), Decay::no);
  if (config_.layer_norm) {
    gain_ih_ = add_parameter("gain_ih", ones({width}, dtype), Decay::no);
    gain_hh_ = add_parameter("gain_hh", ones({width}, dtype), Decay::no);
    gain_c_ = add_parameter("gain_c", ones({hidden_size}, dtype), Decay::no);
    shift_c_ = add_parameter("shift_c", zeros({hidden_size}, dtype), Decay::no);
  }
}

std::vector<StateShape> Lstm::state_shapes(int64_t batch) const {
  return {{"h", {batch, output_size()}, dtype()}, {"c", {batch, output_size()}, dtype()}};
}

Variable Lstm::recurrent_input(const Variable& h, const StepOptions& options) const {
  if (config_.variational_dropout == 0 || !options.dropout_key || !training()) return h;
  return sequence_dropout(h, config_.variational_dropout, *options.dropout_key);  // of step 0, whatever the step
}

Variable Lstm::before_gates(const Variable& x_t, const Variable& h) const {
  if (!config_.layer_norm) return linear(x_t, weight_ih_, bias_ih_) + linear(h, weight_hh_, bias_hh_);
  return normalized_product(x_t, weight_ih_, gain_ih_) + normalized_product(h, weight_hh_, gain_hh_) +
         (bias_ih_ + bias_hh_);
}

StepResult Lstm::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Lstm", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  const std::vector<int64_t> widths(static_cast<size_t>(gates()), output_size());
  const Variables z = split(before_gates(x_t, recurrent_input(before["h"], options)), widths, 1);
  // What a gate sees of the cell: row 0, 1, 2 of the peepholes for i, f, o.
  const auto peep = [this](const Variable& gate, int64_t row, const Variable& c) {
    return config_.peepholes ? gate + select(peephole_, 0, row) * c : gate;
  };
  const Variable i = sigmoid(peep(z.front(), 0, before["c"]));
  const Variable g = tanh(z[z.size() - 2]);
  const Variable kept = config_.forget_gate ? sigmoid(peep(z[1], 1, before["c"])) * before["c"] : before["c"];
  const Variable c = kept + i * g;
  const Variable o = sigmoid(peep(z.back(), 2, c));
  const Variable h = o * tanh(config_.layer_norm ? layer_norm(c, gain_c_, shift_c_) : c);
  return {.output = h, .state = {{"h", h}, {"c", c}}};
}

}  // namespace carousel
