#include "measure.h"

#include <carousel/tensor/error.h>

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace carousel::bench {

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> call_times(double seconds, const std::function<void()>& body) {
  std::vector<double> times;
  for (const auto start = Clock::now(); times.size() < 3 || seconds_since(start) < seconds;) {
    const auto before = Clock::now();
    body();
    times.push_back(seconds_since(before));
  }
  return times;
}

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double log_log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto positive = [](double value) { return value > 0; };
  check<ValueError>(x.size() >= 2 && x.size() == y.size() && std::all_of(x.begin(), x.end(), positive) &&
                        std::all_of(y.begin(), y.end(), positive),
                    "log_log_slope", "there must be two or more points, all positive: got {} and {}", x.size(),
                    y.size());
  const auto count = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / count;
    mean_y += std::log(y[i]) / count;
  }
  double together = 0, alone = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = std::log(x[i]) - mean_x;
    together += dx * (std::log(y[i]) - mean_y);
    alone += dx * dx;
  }
  return together / alone;
}

void print_line(const nlohmann::ordered_json& record) {
  fmt::print("{}\n", record.dump());
  std::fflush(stdout);
}

Field threads_field(int64_t& target) {
  return {.name = "threads", .target = &target, .help = "of kernels and BLAS", .minimum = 1, .maximum = 1024};
}

}  // namespace carousel::bench
