#include <carousel/nn/mamba.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/causal_conv.h>
#include <carousel/nn/init.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {
namespace {

constexpr int64_t features_per_rank = 16;

// softplus^-1(dt), dt log-uniform.
Tensor step_bias(int64_t channels, Rng& rng, DType dtype) {
  constexpr double shortest = 0.001, longest = 0.1;
  const double middle = std::log(shortest * longest) / 2, reach = std::log(longest / shortest) / 2;
  return init::computed({channels}, dtype, [channels, middle, reach, dtype, &rng] {
    const Tensor dt = exp(init::uniform({channels}, reach, rng, DType::float64) + middle);
    return (dt + log(-expm1(-dt))).to(dtype);
  });
}

// log(1 .. N) for each channel.
Tensor initial_a_log(int64_t channels, int64_t states, DType dtype) {
  const Shape shape{channels, states};
  return init::computed(shape, dtype, [states, dtype, &shape] {
    return log(arange(states, DType::float64) + 1.0).expand(shape).contiguous().to(dtype);
  });
}

// [B, T, ..] to [T, B, ..] or back: elementwise operations give tensors that are row-major, and the kernels want theirs
// time-major.
Variable turned(const Variable& x) { return transpose(x, 0, 1); }

}  // namespace

Fields fields(MambaConfig& config) {
  return {{.name = "state_size",
           .target = &config.state_size,
           .help = "numbers that a channel remembers",
           .minimum = 1,
           .maximum = 1024,
           .aliases = {"d_state"}},
          {.name = "conv_width",
           .target = &config.conv_width,
           .help = "inputs that the convolution sees",
           .minimum = 2,
           .maximum = 64,
           .aliases = {"d_conv", "conv_kernel"}},
          {.name = "expand",
           .target = &config.expand,
           .help = "channels for each feature of the model",
           .minimum = 1,
           .maximum = 16},
          {.name = "gate", .target = &config.gate, .help = "multiply the scan's output by a gate"},
          {.name = "selective", .target = &config.selective, .help = "false: B, C and dt do not depend on the input"}};
}

Variable Mamba::Part::apply(const Variable& x) const { return linear(x, weight, bias); }

Mamba::Mamba(int64_t size, const MambaConfig& config, int64_t depth, Rng& rng, DType dtype) : config_(config) {
  check<ValueError>(size > 0 && depth > 0, "Mamba", "size and depth must be positive: got {} and {}", size, depth);
  check_fields("Mamba", fields(config_));
  const int64_t inner = config_.expand * size, states = config_.state_size, width = config_.conv_width;
  const int64_t rank = (size + features_per_rank - 1) / features_per_rank;
  a_log_ = add_parameter("A_log", initial_a_log(inner, states, dtype), Decay::no);
  d_ = add_parameter("D", init::constant({inner}, 1, dtype), Decay::no);
  in_proj_.add(init::fan_in_uniform({config_.gate ? 2 * inner : inner, size}, size, rng, dtype));
  add_child("in_proj", in_proj_);
  conv1d_.add(init::fan_in_uniform({inner, 1, width}, width, rng, dtype));
  conv1d_.add_bias(init::fan_in_uniform({inner}, width, rng, dtype));
  add_child("conv1d", conv1d_);
  if (config_.selective) {
    x_proj_.add(init::fan_in_uniform({rank + 2 * states, inner}, inner, rng, dtype));
    add_child("x_proj", x_proj_);
    dt_proj_.add(init::fan_in_uniform({inner, rank}, rank, rng, dtype));
    dt_proj_.add_bias(step_bias(inner, rng, dtype));
    add_child("dt_proj", dt_proj_);
  } else {
    b_ = add_parameter("B", init::constant({inner, states}, 1, dtype), Decay::no);
    c_ = add_parameter("C", init::normal({inner, states}, 1, rng, dtype), Decay::yes);
    dt_bias_ = add_parameter("dt_bias", step_bias(inner, rng, dtype), Decay::no);
  }
  out_proj_.add(init::fan_in_uniform({size, inner}, inner * depth, rng, dtype));
  add_child("out_proj", out_proj_);
}

int64_t Mamba::input_size() const { return out_proj_.weight.size(0); }
DType Mamba::dtype() const { return d_.dtype(); }

std::vector<StateShape> Mamba::state_shapes(int64_t batch) const {
  return {{"conv", {batch, channels(), config_.conv_width - 1}, dtype()},
          {"h", {batch, channels(), config_.state_size}, dtype()}};
}

Variable Mamba::conv_weight() const { return squeeze(conv1d_.weight, 1); }

std::pair<Variable, Variable> Mamba::in_parts(const Variable& x) const {
  const Variable projected = in_proj_.apply(x);
  if (!config_.gate) return {projected, {}};
  const Variables parts = split(projected, std::vector<int64_t>{channels(), channels()}, -1);
  return {parts[0], parts[1]};
}

ScanTerms Mamba::scan_terms(const Variable& u) const {
  ScanTerms terms{.u = u, .dt = {}, .a = -exp(a_log_), .b = b_, .c = c_, .d = d_};
  if (!config_.selective) {
    terms.dt = expand(softplus(dt_bias_), u.shape());
    return terms;
  }
  const int64_t states = config_.state_size, rank = dt_proj_.weight.size(1);
  const Variables parts = split(x_proj_.apply(u), std::vector<int64_t>{rank, states, states}, -1);
  terms.dt = softplus(dt_proj_.apply(parts[0]));
  terms.b = parts[1];
  terms.c = parts[2];
  return terms;
}

Variable Mamba::gated(const Variable& y, const Variable& z) const { return z.defined() ? silu_gate(y, z) : y; }

StepResult Mamba::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Mamba", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  const auto [input, z] = in_parts(x_t);  // [B, I] each
  const Variables seen{before["conv"], unsqueeze(input, 2)};
  const Variable window = concatenate(seen, 2);  // [B, I, W]
  const Variable u = silu(sum(window * conv_weight(), {2}) + conv1d_.bias);
  const ScanTerms terms = scan_terms(u);
  // B and C as [B, 1, N], or [I, N] where they are fixed.
  const auto of_channels = [this](const Variable& x) { return config_.selective ? unsqueeze(x, 1) : x; };
  const Variable decay = exp(unsqueeze(terms.dt, 2) * terms.a);  // [B, I, N]
  const Variable h = decay * before["h"] + unsqueeze(terms.dt * u, 2) * of_channels(terms.b);
  const Variable y = sum(h * of_channels(terms.c), {2}) + terms.d * u;
  return {.output = out_proj_.apply(gated(y, z)), .state = {{"conv", slice(window, 2, {.start = 1})}, {"h", h}}};
}

SequenceResult Mamba::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("Mamba", *this, x, state, options);
  if (x.size(1) == 0) return unroll(x, state, options);
  const auto [input, z] = in_parts(turned(zero_after_end(x, options.lengths)));  // [T, B, I] each
  const CausalConvResult conv = causal_conv(turned(input), state["conv"], conv_weight(), conv1d_.bias, options);
  ScanTerms terms = scan_terms(silu(turned(conv.output)));
  for (Variable* sequence : {&terms.u, &terms.dt}) *sequence = turned(*sequence);
  if (config_.selective) {
    for (Variable* sequence : {&terms.b, &terms.c}) *sequence = turned(*sequence);
  }
  const ScanResult scan = selective_scan(terms, state["h"], options);
  const Variable y = turned(out_proj_.apply(gated(turned(scan.output), z)));
  return {.output = zero_after_end(y, options.lengths), .state = {{"conv", conv.window}, {"h", scan.state}}};
}

}  // namespace carousel
