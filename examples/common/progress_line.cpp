#include "common/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace carousel::examples {

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  if (seconds < 99.5 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string progress_line(const ProgressFacts& facts, int64_t columns) {
  const std::vector<std::string> parts = {
      fmt::format("{}/{}", facts.step, facts.steps),         fmt::format("loss {:.3f}", facts.loss),
      fmt::format("{} left", time_text(facts.seconds_left)), fmt::format("{:.0f} tokens/s", facts.tokens_per_s),
      fmt::format("norm {:.2f}", facts.grad_norm),           fmt::format("lr {:.1e}", facts.lr)};
  constexpr int64_t widest = 30, narrowest = 8, around = 4;  // of the bar: two brackets, a space, the free column
  const int64_t room = columns - (columns >= 50 ? narrowest + around : 1);
  std::string text;
  for (const std::string& part : parts) {
    if (std::ssize(text) + std::ssize(part) + (text.empty() ? 0 : 2) > room) break;
    text += (text.empty() ? "" : "  ") + part;
  }
  const int64_t width = std::min(widest, columns - std::ssize(text) - around);
  if (width < narrowest) return text;
  const auto filled = static_cast<size_t>(std::clamp<int64_t>(width * facts.step / facts.steps, 0, width));
  return fmt::format("[{:-<{}}] {}", std::string(filled, '#'), width, text);
}

}  // namespace carousel::examples
