#include <carousel/nn/sequence_layer.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

// [B] as [B, 1, ..], to broadcast over an entry of `rank` axes.
Tensor over_rows(Tensor mask, int rank) {
  while (mask.rank() < rank) {
    mask = mask.unsqueeze(-1);
  }
  return mask;
}

// Row by row `a` where `mask` [B] is true, else `b`.
State where_rows(const Tensor& mask, const State& a, const State& b) {
  State chosen;
  for (const auto& [name, value] : a.values()) {
    chosen.set(name, where(over_rows(mask, value.rank()), value, b[name]));
  }
  for (const auto& [name, value] : a.counts()) {
    chosen.set_count(name, where(over_rows(mask, value.rank()), value, b.count(name)));
  }
  return chosen;
}

State zeros_like(const State& state) {
  State nothing;
  for (const auto& [name, value] : state.values()) {
    nothing.set(name, zeros_like(value.value()));
  }
  for (const auto& [name, value] : state.counts()) {
    nothing.set_count(name, zeros_like(value));
  }
  return nothing;
}

// Rows that have ended put out zeros and keep their state.
StepResult stop_ended_rows(const StepResult& result, const State& before, const Tensor& active) {
  const Variable nothing = zeros(result.output.shape(), result.output.dtype());
  return {where(over_rows(active, result.output.rank()), result.output, nothing),
          where_rows(active, result.state, before)};
}

// Shows the visitor what a fused backward would: the total derivative of the loss with respect to each entry of the
// state after step `t`.
void show_gradients(const State& state, int64_t t, const SequenceOptions& options) {
  for (const auto& entry : state.values()) {
    Variable value = entry.second;
    if (!value.requires_grad()) {
      continue;
    }
    value.add_hook([name = entry.first, t, visitor = options.visitor, path = options.path](const Tensor& gradient) {
      visitor({.layer = path, .first_step = t, .saved = {}, .gradient = {{name, gradient.unsqueeze(0)}}});
      return Tensor();
    });
  }
}

}  // namespace

State reset_rows(const State& state, const Tensor& reset) {
  return reset.defined() ? where_rows(reset, zeros_like(state), state) : state;
}

SequenceResult SequenceLayer::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  return unroll(x, state, options);
}

SequenceResult SequenceLayer::unroll(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("unroll", *this, x, state, options);
  const int64_t steps = x.size(1);
  if (steps == 0) {
    return {zeros({x.size(0), 0, output_size()}, dtype()), state};
  }
  const Variables inputs = unbind(x, 1);
  Variables outputs;
  State now = state;
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor reset = options.reset.defined() ? options.reset.select(1, t) : Tensor();
    StepResult result =
        step(inputs[static_cast<size_t>(t)], now, {.reset = reset, .dropout_key = options.dropout_key, .time = t});
    if (options.visitor) {  // before ended rows are masked: what a live row puts out is part of its gradient
      show_gradients(result.state, t, options);
    }
    if (options.lengths.defined()) {
      result = stop_ended_rows(result, now, greater(options.lengths, static_cast<double>(t)));
    }
    now = std::move(result.state);
    outputs.push_back(std::move(result.output));
  }
  return {transpose(stack(outputs, 0), 0, 1), now};
}

}  // namespace carousel
