#pragma once

#include <algorithm>
#include <cstdint>

namespace carousel::kernels {

/// Which steps a kernel goes through, where rows are cut from their past, and where they end. Everything that has steps
/// is time-major, [T, B, ..], without gaps.
struct SequenceShape {
  int64_t steps, batch;
  const bool* reset = nullptr;       // [T, B]: the row's state is zero before this step
  const int64_t* lengths = nullptr;  // [B]: the row has ended after so many steps: outputs 0, the state stays
  int64_t first_step = 0;            // what `lengths` calls the first of these steps

  /// How many of the steps lie before the row's end.
  int64_t live_steps(int64_t row) const {
    return lengths == nullptr ? steps : std::clamp<int64_t>(lengths[row] - first_step, 0, steps);
  }
  bool ended(int64_t t, int64_t row) const { return lengths != nullptr && first_step + t >= lengths[row]; }
  /// Whether the row's state is cut off before step t; what comes after a row's end changes nothing.
  bool cleared(int64_t t, int64_t row) const { return reset != nullptr && reset[t * batch + row] && !ended(t, row); }
};

/// What the kernels of the recurrent layers are told about their sequences.
struct Recurrence : SequenceShape {
  int64_t hidden;
};

}  // namespace carousel::kernels
