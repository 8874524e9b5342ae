#include <carousel/optim/windows.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>

namespace carousel {
namespace {

// Inputs and targets of consecutive time-major rows [T + 1, B].
Window window_of(const Tensor& rows, bool starts) {
  return {.inputs = rows.slice(0, {.start = 0, .stop = rows.size(0) - 1}).transpose(0, 1),
          .targets = rows.slice(0, {.start = 1}).transpose(0, 1),
          .starts = starts};
}

// tokens[first[b] + t] at [t][b], t < count.
Tensor rows_from(const Tensor& tokens, const Tensor& first, int64_t count) {
  return take_rows(tokens, arange(count).unsqueeze(1) + first.unsqueeze(0));
}

}  // namespace

TrainingWindows::TrainingWindows(const Tensor& tokens, int64_t rows, int64_t steps, WindowOrder order)
    : rows_(rows), steps_(steps), order_(order), tokens_(tokens) {
  check<ShapeError>(tokens.rank() == 1, "TrainingWindows", "tokens must be [N]: got {}", to_string(tokens.shape()));
  check<ValueError>(tokens.dtype() == DType::int64, "TrainingWindows", "tokens must be int64: got {}",
                    to_string(tokens.dtype()));
  check<ValueError>(rows > 0 && steps > 0, "TrainingWindows", "rows and steps must be positive: got {} and {}", rows,
                    steps);
  // Divided, not multiplied: rows * steps may not fit into 64 bits.
  const int64_t length = (tokens.numel() - 1) / rows;
  check<ValueError>(tokens.numel() > 0 && length >= steps, "TrainingWindows",
                    "{} rows of {} steps need at least {:.0f} tokens: got {}", rows, steps,
                    static_cast<double>(rows) * static_cast<double>(steps) + 1, tokens.numel());
  windows_per_pass_ = length / steps;
  if (order == WindowOrder::contiguous) {
    streams_ = rows_from(tokens, arange(rows) * static_cast<double>(length), length + 1);
  }
}

Window TrainingWindows::next(Rng& rng) {
  const int64_t turn = position_++ % windows_per_pass_;
  if (order_ == WindowOrder::random) {
    return window_of(rows_from(tokens_, rng.integers({rows_}, 0, tokens_.numel() - steps_), steps_ + 1), true);
  }
  const int64_t first = turn * steps_;
  return window_of(streams_.slice(0, {.start = first, .stop = first + steps_ + 1}), turn == 0);
}

void TrainingWindows::seek(int64_t position) {
  check<ValueError>(position >= 0, "TrainingWindows", "position must be >= 0: got {}", position);
  position_ = position;
}

}  // namespace carousel
