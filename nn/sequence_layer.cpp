#include <carousel/nn/sequence_layer.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>

#include <array>

namespace carousel {
namespace {

// [B] as [B, 1, ..], to broadcast over an entry of `rank` axes.
Tensor over_rows(Tensor mask, int rank) {
  while (mask.rank() < rank) mask = mask.unsqueeze(-1);
  return mask;
}

// `value`, a Tensor or a Variable, with zeros behind it on the axes on which `shape` is longer: an entry of a state
// that has grown since.
template <class Value>
Value grown_to(const Shape& shape, Value value) {
  for (int axis = 1; axis < shape.rank(); ++axis) {
    Shape missing = value.shape();
    missing[axis] = shape[axis] - missing[axis];
    if (missing[axis] <= 0) continue;
    value = concatenate(std::array<Value, 2>{value, Value(zeros(missing, value.dtype()))}, axis);
  }
  return value;
}

// Row by row `a` where `mask` [B] is true, else `b`, from which `a` may have grown.
State where_rows(const Tensor& mask, const State& a, const State& b) {
  State chosen;
  for (const auto& [name, value] : a.values()) {
    chosen.set(name, where(over_rows(mask, value.rank()), value, grown_to(value.shape(), b[name])));
  }
  for (const auto& [name, value] : a.counts()) {
    chosen.set_count(name, where(over_rows(mask, value.rank()), value, grown_to(value.shape(), b.count(name))));
  }
  return chosen;
}

State nothing_like(const State& state) {
  State nothing;
  for (const auto& [name, value] : state.values()) nothing.set(name, zeros_like(value.value()));
  for (const auto& [name, value] : state.counts()) nothing.set_count(name, zeros_like(value));
  return nothing;
}

// Row by row `x` where `mask` [B] is true, else zeros.
Variable keep_rows(const Tensor& mask, const Variable& x) {
  return where(over_rows(mask, x.rank()), x, Variable(zeros(x.shape(), x.dtype())));
}

// One step in which only the rows in `active` [B] take part: the others give zeros and keep their state. They are kept
// out on the way in too, since a gradient of zero times what is not finite is NaN.
template <class Step>
StepResult step_active(const Tensor& active, const Variable& x_t, const State& state, const Step& step) {
  const StepResult result = step(keep_rows(active, x_t), where_rows(active, state, nothing_like(state)));
  return {keep_rows(active, result.output), where_rows(active, result.state, state)};
}

// Shows the visitor what a fused backward would: the total derivative of the loss with respect to each entry of the
// state after step `t`.
void show_gradients(const State& state, int64_t t, const SequenceOptions& options) {
  for (const auto& entry : state.values()) {
    Variable value = entry.second;
    if (!value.requires_grad()) continue;
    value.add_hook([name = entry.first, t, visitor = options.visitor, path = options.path](const Tensor& gradient) {
      visitor({.layer = path, .first_step = t, .saved = {}, .gradient = {{name, gradient.unsqueeze(0)}}});
      return Tensor();
    });
  }
}

// [B, 0, H] with a history, none of a step of zeros: so that a backward from it reaches the parameters, with zeros.
Variable no_outputs(const SequenceLayer& layer, int64_t batch) {
  const StepResult one = layer.step(zeros({batch, layer.input_size()}, layer.dtype()), layer.initial_state(batch));
  return slice(unsqueeze(one.output, 1), 1, {.stop = 0});
}

}  // namespace

State reset_rows(const State& state, const Tensor& reset) {
  return reset.defined() ? where_rows(reset, nothing_like(state), state) : state;
}

Tensor before_end(const Tensor& lengths, int64_t steps) { return less(arange(steps), lengths.unsqueeze(1)); }

Variable zero_after_end(const Variable& x, const Tensor& lengths) {
  if (!lengths.defined()) return x;
  return where(over_rows(before_end(lengths, x.size(1)), x.rank()), x, Variable(zeros({}, x.dtype())));
}

int64_t SequenceLayer::multiply_adds(int64_t) const {
  int64_t count = 0;
  for (const NamedParameter& parameter : parameters()) {
    if (parameter.variable.rank() >= 2) count += parameter.variable.value().numel();
  }
  return count;
}

SequenceResult SequenceLayer::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  return unroll(x, state, options);
}

SequenceResult SequenceLayer::forward_lookup(const Lookup& x, const State& state,
                                             const SequenceOptions& options) const {
  return forward(x.rows(), state, options);
}

State SequenceLayer::initial_state(int64_t batch) const {
  State state;
  for (const StateShape& entry : state_shapes(batch)) {
    const Tensor nothing = zeros(entry.shape, entry.dtype);
    if (entry.dtype == DType::int64) {
      state.set_count(entry.name, nothing);
    } else {
      state.set(entry.name, nothing);
    }
  }
  return state;
}

SequenceResult SequenceLayer::unroll(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("unroll", *this, x, state, options);
  const int64_t steps = x.size(1);
  if (steps == 0) return {no_outputs(*this, x.size(0)), state};
  const Variables inputs = unbind(x, 1);
  Variables outputs;
  State now = state;
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor reset = options.reset.defined() ? options.reset.select(1, t) : Tensor();
    const auto take_step = [this, t, &reset, &options](const Variable& x_t, const State& before) {
      StepResult result = step(x_t, before, {.reset = reset, .dropout_key = options.dropout_key, .time = t});
      if (options.visitor) show_gradients(result.state, t, options);
      return result;
    };
    const Variable& x_t = inputs[static_cast<size_t>(t)];
    StepResult result = options.lengths.defined()
                            ? step_active(greater(options.lengths, static_cast<double>(t)), x_t, now, take_step)
                            : take_step(x_t, now);
    now = std::move(result.state);
    outputs.push_back(std::move(result.output));
  }
  return {transpose(stack(outputs, 0), 0, 1), now};
}

}  // namespace carousel
