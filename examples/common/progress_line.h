#pragma once

#include <cstdint>
#include <string>

namespace carousel::examples {

/// Where a training run stands.
struct ProgressFacts {
  int64_t step = 0, steps = 1;
  double loss = 0;  ///< nats
  double grad_norm = 0;
  double lr = 0;
  double tokens_per_s = 0;
  double seconds_left = 0;
};

/// One line of a terminal with `columns` columns, of which it leaves the last one free: a bar and the facts, or as many
/// of them as fit, the most wanted ones first.
std::string progress_line(const ProgressFacts& facts, int64_t columns);

/// A time as people say it: "45 s", "12 min", "3.5 h".
std::string time_text(double seconds);

}  // namespace carousel::examples
