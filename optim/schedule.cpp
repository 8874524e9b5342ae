#include <carousel/optim/schedule.h>

#include <carousel/tensor/error.h>

#include <cmath>
#include <numbers>

namespace carousel {
namespace {

void check_step(std::string_view schedule, int64_t step) {
  check<ValueError>(step >= 0, schedule, "step must be >= 0: got {}", step);
}

}  // namespace

double ConstantRate::rate(int64_t step) const {
  check_step("ConstantRate", step);
  check<ValueError>(std::isfinite(value) && value >= 0, "ConstantRate", "rate must be finite and >= 0: got {}", value);
  return value;
}

double WarmupCosine::rate(int64_t step) const {
  check_step("WarmupCosine", step);
  check<ValueError>(std::isfinite(peak) && floor >= 0 && floor <= peak, "WarmupCosine",
                    "rates must be finite and 0 <= floor <= peak: got {} and {}", floor, peak);
  check<ValueError>(warmup >= 0 && warmup <= end, "WarmupCosine", "steps must be 0 <= warmup <= end: got {} and {}",
                    warmup, end);
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (step == warmup) return peak;  // also when warm-up and end coincide and there is no cosine between
  if (step >= end) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(end - warmup);
  return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace carousel
