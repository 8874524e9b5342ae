#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/optim/bptt.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carousel {
namespace {

constexpr uint64_t later_part = uint64_t{1} << 62;  // a use of the dropout key: no layer's

// Steps after steps, time-major in memory, as layers read them.
Tensor joined(const Tensor& before, const Tensor& after) {
  return concatenate(std::array<Tensor, 2>{before.transpose(0, 1), after.transpose(0, 1)}, 0).transpose(0, 1);
}

// A mask where nobody gave one.
Tensor mask_or_none(const Tensor& reset, const Tensor& inputs) {
  return reset.defined() ? reset : zeros({inputs.size(0), inputs.size(1)}, DType::boolean);
}

// What a window reads: the steps that are remembered, and the new ones.
struct WindowInputs {
  WindowInputs(const BpttMemory& memory, const Tensor& new_inputs, const Tensor& new_reset)
      : inputs(new_inputs), reset(new_reset) {
    if (!memory.inputs.defined()) return;
    inputs = joined(memory.inputs, new_inputs);
    if (!memory.reset.defined() && !new_reset.defined()) return;
    reset = joined(mask_or_none(memory.reset, memory.inputs), mask_or_none(new_reset, new_inputs));
  }

  Tensor inputs;  // [B, steps, ..]
  Tensor reset;   // bool [B, steps], or undefined
};

// Some steps of a window. A part that is not its first has dropout masks and step numbers of its own.
SequenceResult read_part(const StatefulModel& model, const WindowInputs& window, const Slice& range, const State& state,
                         const SequenceOptions& options) {
  SequenceOptions own = options;
  if (window.reset.defined()) own.reset = window.reset.slice(1, range);
  if (const int64_t first = range.start; first > 0) {
    own.dropout_key = derived_key(options.dropout_key, later_part);
    if (options.visitor) {
      own.visitor = [visitor = options.visitor, first](const BackwardView& view) {
        BackwardView shifted = view;
        shifted.first_step += first;
        visitor(shifted);
      };
    }
  }
  return model.forward(window.inputs.slice(1, range), state, own);
}

void check_config(std::string_view operation, const BpttConfig& config) {
  check<ValueError>(config.update_every >= 1 && config.back >= config.update_every, operation,
                    "steps must be 1 <= update_every <= back: got {} and {}", config.update_every, config.back);
}

void check_call(const Tensor& inputs, const BpttMemory& memory, const BpttConfig& config,
                const SequenceOptions& options) {
  check_config("forward_truncated", config);
  check<ValueError>(!options.lengths.defined(), "forward_truncated",
                    "rows of a text have no lengths: mark the targets behind an end as ignored");
  check<ShapeError>(inputs.rank() >= 2, "forward_truncated", "inputs must be [B, T, ..]: got {}",
                    to_string(inputs.shape()));
  check<ValueError>(inputs.size(1) >= 1 && inputs.size(1) <= config.update_every, "forward_truncated",
                    "a call must bring 1 to update_every = {} steps: got {}", config.update_every, inputs.size(1));
  const int64_t remembered = memory.inputs.defined() ? memory.inputs.size(1) : 0;
  check<ValueError>(remembered + inputs.size(1) <= config.back, "forward_truncated",
                    "remembered and new steps must be at most back = {}: got {} and {}", config.back, remembered,
                    inputs.size(1));
  check_options("forward_truncated", inputs.size(0), inputs.size(1), options);
}

// The last `steps` of the outputs of one or two parts.
Variable last_steps(const Variables& parts, int64_t steps) {
  const Variable whole = parts.back().size(1) < steps ? concatenate(parts, 1) : parts.back();
  return whole.size(1) == steps ? whole : slice(whole, 1, {.start = whole.size(1) - steps});
}

// forward_truncated where the next call will bring `next_steps`.
BpttResult read_window(const StatefulModel& model, const Tensor& inputs, const BpttMemory& memory,
                       const BpttConfig& config, int64_t next_steps, const SequenceOptions& options) {
  const WindowInputs window(memory, inputs, options.reset);
  const int64_t steps = window.inputs.size(1);
  // Where the next window begins, in this one. A state that it carries is computed on the way, so the way has a stop.
  const int64_t next = std::max<int64_t>(0, steps + next_steps - config.back);
  const bool carries = config.carry == Carry::state && model.carries();
  const int64_t stop = carries && next > 0 ? next : steps;

  SequenceResult part = read_part(model, window, {.start = 0, .stop = stop}, memory.start, options);
  BpttResult result{.output = {}, .state = {}, .memory = {.start = memory.start}};
  if (next > 0) result.memory.start = carries ? part.state.detach() : model.initial_state(inputs.size(0));
  if (next < steps) {
    result.memory.inputs = window.inputs.slice(1, {.start = next});
    if (window.reset.defined()) result.memory.reset = window.reset.slice(1, {.start = next});
  }
  Variables outputs{std::move(part.output)};
  if (stop < steps) {
    part = read_part(model, window, {.start = stop, .stop = steps}, part.state, options);
    outputs.push_back(std::move(part.output));
  }
  result.output = last_steps(outputs, inputs.size(1));
  result.state = std::move(part.state);
  return result;
}

bool is_empty(const State& state) { return state.values().empty() && state.counts().empty(); }

}  // namespace

SequenceResult StatefulModel::forward(const Tensor& inputs, const State& state, const SequenceOptions& options) const {
  if (const auto* const* layer = std::get_if<const SequenceLayer*>(&model_)) {
    return (*layer)->forward(inputs, state, options);
  }
  ModelResult result = std::get<const CharacterModel*>(model_)->forward(inputs, state, options);
  return {std::move(result.logits), std::move(result.state)};
}

State StatefulModel::initial_state(int64_t batch) const {
  return std::visit([batch](const auto* model) { return model->initial_state(batch); }, model_);
}

bool StatefulModel::carries() const {
  const auto* const* model = std::get_if<const CharacterModel*>(&model_);
  return model == nullptr || !(*model)->context();
}

BpttResult forward_truncated(const StatefulModel& model, const Tensor& inputs, const BpttMemory& memory,
                             const BpttConfig& config, const SequenceOptions& options) {
  check_call(inputs, memory, config, options);
  return read_window(model, inputs, memory, config, config.update_every, options);
}

BpttTrace train_truncated(const StatefulModel& model, Optimizer& optimizer, const BpttText& text, const StepsLoss& loss,
                          const BpttTraining& training) {
  const BpttConfig& config = training.windows;
  check_config("train_truncated", config);
  check<ShapeError>(text.inputs.rank() >= 2, "train_truncated", "inputs must be [B, N, ..]: got {}",
                    to_string(text.inputs.shape()));
  const int64_t batch = text.inputs.size(0), steps = text.inputs.size(1);
  check_options("train_truncated", batch, steps, {.reset = text.reset});
  BpttMemory memory{.start = is_empty(text.start) ? model.initial_state(batch) : text.start};
  BpttTrace trace{.losses = {}, .norms = {}, .state = memory.start.detach()};
  for (int64_t first = 0; first < steps; first += config.update_every) {
    const int64_t end = std::min(first + config.update_every, steps), update = first / config.update_every;
    const int64_t next = end < steps ? std::min(config.update_every, steps - end) : config.back;
    SequenceOptions options;
    options.reset = text.reset.defined() ? text.reset.slice(1, {.start = first, .stop = end}) : Tensor();
    options.dropout_key = derived_key(training.dropout_key, static_cast<uint64_t>(update));
    const Tensor inputs = text.inputs.slice(1, {.start = first, .stop = end});
    BpttResult result = read_window(model, inputs, memory, config, next, options);
    const Variable of_steps = loss(result.output, first);
    const double value = of_steps.value().item();
    check<NonFiniteError>(std::isfinite(value), "train_truncated", "the loss must be finite: got {} at update {}",
                          value, update);
    optimizer.zero_grad();
    of_steps.backward();
    trace.norms.push_back(optimizer.step(training.rate(update), training.limits));
    trace.losses.push_back(value);
    trace.state = result.state.detach();
    memory = std::move(result.memory);
  }
  return trace;
}

}  // namespace carousel
