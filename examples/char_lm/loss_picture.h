#pragma once

#include <string>
#include <vector>

namespace carousel::examples {

/// A loss to compare with that takes no training: guessing, or a table of counts.
struct Baseline {
  std::string name;
  double nats;
};

/// Draws loss.svg and loss.png of log.jsonl in a folder: train and validation over steps, in nats at the left and bits
/// at the right. Returns a line that says what there is, or why there is nothing; empty for a log with less than two
/// records.
std::string draw_losses(const std::string& folder, const std::vector<Baseline>& baselines);

}  // namespace carousel::examples
