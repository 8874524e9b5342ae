#include <carousel/nn/evaluate.h>

#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>

#include <algorithm>
#include <array>

namespace carousel {
namespace {

// What has been scored so far, and the state that goes on from there.
struct Reading {
  State state;
  double nats = 0;
};

// Reads inputs and targets [B, T], a window at a time.
void read(const CharacterModel& model, const Tensor& inputs, const Tensor& targets, const EvaluateOptions& options,
          Reading& reading) {
  const int64_t steps = inputs.size(1);
  for (int64_t first = 0; first < steps; first += options.window) {
    if (options.before_window) options.before_window();
    const Slice range = {.start = first, .stop = std::min(first + options.window, steps)};
    const Tensor part = inputs.slice(1, range);
    LossResult result = model.loss(part, targets.slice(1, range), reading.state);
    reading.nats += result.loss.value().item() * static_cast<double>(part.numel());
    reading.state = std::move(result.state);
  }
}

// The state of every stream at its first scored token. `before` [B, warm-up] are the tokens before, but for the first
// stream, which starts from nothing and reads any.
State warmed_up(const CharacterModel& model, const Tensor& before, int64_t window) {
  State state = model.initial_state(before.size(0));
  for (int64_t first = 0; first < before.size(1); first += window) {
    state =
        model.forward(before.slice(1, {.start = first, .stop = std::min(first + window, before.size(1))}), state).state;
  }
  Tensor is_first = zeros({before.size(0)}, DType::boolean);
  is_first.slice(0, {.stop = 1}).fill_(1);
  return reset_rows(state, is_first);
}

// Reads the tokens in consecutive windows of the model's context, each from the initial state, some side by side.
double read_windows(const CharacterModel& model, const Tensor& tokens, int64_t context,
                    const EvaluateOptions& options) {
  double nats = 0;
  const auto read = [&model, &tokens, &options, &nats](int64_t first, int64_t count, int64_t length) {
    if (options.before_window) options.before_window();
    const auto part = [&tokens, count, length](int64_t start) {
      return tokens.slice(0, {.start = start, .stop = start + count * length}).reshape({count, length});
    };
    const LossResult result = model.loss(part(first), part(first + 1), model.initial_state(count));
    nats += result.loss.value().item() * static_cast<double>(count * length);
  };
  const int64_t scored = tokens.numel() - 1, windows = scored / context;
  const int64_t rows = std::max<int64_t>(1, options.window / context);
  for (int64_t done = 0; done < windows; done += rows) read(done * context, std::min(rows, windows - done), context);
  if (scored % context > 0) read(windows * context, 1, scored % context);
  return nats / static_cast<double>(scored);
}

State last_row(const State& state) {
  State row;
  for (const auto& [name, value] : state.values()) row.set(name, value.value().slice(0, {.start = -1}));
  for (const auto& [name, value] : state.counts()) row.set_count(name, value.slice(0, {.start = -1}));
  return row;
}

}  // namespace

double evaluate(const CharacterModel& model, const Tensor& tokens, const EvaluateOptions& options) {
  check<ShapeError>(tokens.rank() == 1, "evaluate", "tokens must be [N]: got {}", to_string(tokens.shape()));
  check<ValueError>(options.streams > 0 && options.window > 0, "evaluate",
                    "streams and window must be positive: got {} and {}", options.streams, options.window);
  const int64_t scored = tokens.numel() - 1;
  check<ValueError>(scored >= options.streams, "evaluate", "needs at least {} tokens: got {}", options.streams + 1,
                    tokens.numel());
  const NoGrad no_grad;
  if (const auto context = model.context()) {
    return read_windows(model, tokens, *context, options);
  }
  const int64_t length = scored / options.streams;
  const int64_t even = length * options.streams;
  check<ValueError>(options.warm_up >= 0 && options.warm_up <= length, "evaluate",
                    "warm_up must be at most the {} tokens of a piece: got {}", length, options.warm_up);
  const auto rows = [&tokens, &options, even, length](int64_t first) {
    const Tensor part = tokens.slice(0, {.start = first, .stop = first + even});
    return part.reshape({options.streams, length});
  };
  Reading reading{.state = model.initial_state(options.streams)};
  if (options.warm_up > 0) {
    const Tensor ends = rows(0).slice(1, {.start = length - options.warm_up});  // of the pieces: what precedes the next
    const std::array<Tensor, 2> turned{ends.slice(0, {.start = -1}), ends.slice(0, {.stop = -1})};
    reading.state = warmed_up(model, concatenate(turned, 0), options.window);
  }
  read(model, rows(0), rows(1), options, reading);
  if (even < scored) {  // the last stream goes on to the end
    reading.state = last_row(reading.state);
    read(model, tokens.slice(0, {.start = even, .stop = scored}).unsqueeze(0),
         tokens.slice(0, {.start = even + 1}).unsqueeze(0), options, reading);
  }
  return reading.nats / static_cast<double>(scored);
}

EvaluateOptions quick_reading(int64_t tokens) {
  constexpr int64_t streams = 16, warm_up = 1024, at_once = 1024, shortest_piece = 4 * warm_up;
  const int64_t pieces = std::clamp<int64_t>(tokens / shortest_piece, 1, streams);
  return {.streams = pieces, .window = at_once / pieces, .warm_up = pieces > 1 ? warm_up : 0};
}

}  // namespace carousel
