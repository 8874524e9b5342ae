#include <carousel/optim/schedule.h>

#include <carousel/tensor/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace carousel {
namespace {

void check_step(std::string_view schedule, int64_t step) {
  check<ValueError>(step >= 0, schedule, "step must be >= 0: got {}", step);
}

void check_rates(std::string_view schedule, std::string_view top_name, double top, double floor) {
  check<ValueError>(std::isfinite(top) && floor >= 0 && floor <= top, schedule,
                    "rates must be finite and 0 <= floor <= {}: got {} and {}", top_name, floor, top);
}

void check_decay(std::string_view schedule, double factor, int64_t every) {
  check<ValueError>(factor > 0 && factor <= 1, schedule, "factor must be in (0, 1]: got {}", factor);
  check<ValueError>(every >= 1, schedule, "every must be at least 1 step: got {}", every);
}

void check_warmup(std::string_view schedule, int64_t warmup) {
  check<ValueError>(warmup >= 0, schedule, "warmup must be >= 0: got {}", warmup);
}

double warming_up(double rate, int64_t step, int64_t warmup) {
  return rate * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
}

}  // namespace

double ConstantRate::rate(int64_t step) const {
  check_step("ConstantRate", step);
  check_warmup("ConstantRate", warmup);
  check<ValueError>(std::isfinite(value) && value >= 0, "ConstantRate", "rate must be finite and >= 0: got {}", value);
  return step < warmup ? warming_up(value, step, warmup) : value;
}

double StepRate::rate(int64_t step) const {
  check_step("StepRate", step);
  check_rates("StepRate", "initial", initial, floor);
  check_decay("StepRate", factor, every);
  const int64_t smaller_from = first.value_or(every);
  check<ValueError>(smaller_from >= 1, "StepRate", "first must be at least 1: got {}", smaller_from);
  check<ValueError>(warmup >= 0 && warmup <= smaller_from, "StepRate",
                    "steps must be 0 <= warmup <= first: got {} and {}", warmup, smaller_from);
  if (step < warmup) return warming_up(initial, step, warmup);
  if (step < smaller_from) return initial;
  const int64_t times = 1 + (step - smaller_from) / every;
  return std::max(floor, initial * std::pow(factor, static_cast<double>(times)));
}

double ExponentialRate::rate(int64_t step) const {
  check_step("ExponentialRate", step);
  check_rates("ExponentialRate", "initial", initial, floor);
  check_decay("ExponentialRate", factor, every);
  check_warmup("ExponentialRate", warmup);
  if (step < warmup) return warming_up(initial, step, warmup);
  return std::max(floor, initial * std::pow(factor, static_cast<double>(step - warmup) / static_cast<double>(every)));
}

double WarmupCosine::rate(int64_t step) const {
  check_step("WarmupCosine", step);
  check_rates("WarmupCosine", "peak", peak, floor);
  check<ValueError>(warmup >= 0 && warmup <= end, "WarmupCosine", "steps must be 0 <= warmup <= end: got {} and {}",
                    warmup, end);
  if (step < warmup) return warming_up(peak, step, warmup);
  if (step == warmup) return peak;  // also when warm-up and end coincide and there is no cosine between
  if (step >= end) return floor;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(end - warmup);
  return floor + (peak - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double rate(const Schedule& schedule, int64_t step) {
  return std::visit([step](const auto& each) { return each.rate(step); }, schedule);
}

}  // namespace carousel
