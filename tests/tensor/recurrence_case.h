#pragma once

#include <carousel/tensor/kernels/recurrence.h>

#include <limits>
#include <memory>
#include <vector>

namespace carousel::kernels {

/// What results hold before a kernel has written them.
template <class T>
inline constexpr T unwritten = std::numeric_limits<T>::quiet_NaN();

/// A sequence for the kernels of the recurrent layers, with resets here and there and rows of all lengths.
struct RecurrenceCase {
  RecurrenceCase(int64_t steps, int64_t batch, int64_t hidden, bool with_reset, bool with_lengths)
      : shape{{.steps = steps, .batch = batch}, hidden}, reset(new bool[steps * batch]()) {
    for (int64_t b = 0; b < batch; ++b) lengths.push_back((b * 5 + 3) % (steps + 1));
    for (int64_t i = 0; i < steps * batch; ++i) reset[i] = i % 7 == 2;
    if (with_reset) shape.reset = reset.get();
    if (with_lengths) shape.lengths = lengths.data();
  }

  int64_t states() const { return shape.batch * shape.hidden; }  ///< numbers of one moment
  int64_t all() const { return shape.steps * states(); }         ///< of all steps

  /// The first `split` steps, and the others.
  Recurrence first(int64_t split) const {
    Recurrence part = shape;
    part.steps = split;
    return part;
  }
  Recurrence second(int64_t split) const {
    Recurrence part = shape;
    part.steps -= split;
    part.first_step = split;
    if (part.reset != nullptr) part.reset += split * shape.batch;
    return part;
  }

  Recurrence shape;
  std::unique_ptr<bool[]> reset;
  std::vector<int64_t> lengths;
};

}  // namespace carousel::kernels
