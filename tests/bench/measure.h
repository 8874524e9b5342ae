#pragma once

#include <carousel/nn/fields.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <vector>

/// What the benchmarks share.
namespace carousel::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start);
double median(std::vector<double> values);
/// The seconds of each call of `body`, called for `seconds` but three times at least.
std::vector<double> call_times(double seconds, const std::function<void()>& body);
double rounded(double value, int digits);  ///< after the decimal point
double peak_rss_mib();                     ///< of this process so far
double mib(uint64_t bytes);

/// The power p of y = c x^p: the slope of the line through (log x, log y) with the least squares. Throws ValueError
/// unless there are two or more points, all positive.
double log_log_slope(const std::vector<double>& x, const std::vector<double>& y);

/// Writes a record as one line, at once, so that who reads sees how far a long run has come.
void print_line(const nlohmann::ordered_json& record);

/// The option --threads of all benchmarks.
Field threads_field(int64_t& target);

}  // namespace carousel::bench
