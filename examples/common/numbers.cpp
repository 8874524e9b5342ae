#include "common/numbers.h"

#include <carousel/tensor/error.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <system_error>

namespace carousel::examples {

namespace {

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;  // ten to one reader, eight to another
  return parse_all<int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

namespace {

// The number in front of one of the units, which may be left out, times what the unit stands for.
std::optional<double> parse_with_unit(std::string_view text, std::string_view units, std::span<const double> factors) {
  const size_t unit = text.empty() ? std::string_view::npos : units.find(text.back());
  if (unit != std::string_view::npos) text.remove_suffix(1);
  const std::optional<double> number = parse_number(text);
  return number ? std::optional(*number * (unit == std::string_view::npos ? 1 : factors[unit])) : std::nullopt;
}

}  // namespace

double parse_seconds(std::string_view option, std::string_view text) {
  constexpr std::array<double, 3> factors{1, 60, 3600};
  const std::optional<double> seconds = parse_with_unit(text, "smh", factors);
  check<ValueError>(seconds && *seconds > 0, option, "must be a time like 90s, 5m or 1h: got \"{}\"", text);
  return *seconds;
}

int64_t parse_count(std::string_view option, std::string_view text) {
  constexpr std::array<double, 4> factors{1e3, 1e3, 1e6, 1e9};
  const std::optional<double> number = parse_with_unit(text, "kKMG", factors);
  const double whole = std::round(number.value_or(0));
  const bool fits = number && whole >= 1 && whole < 9e18 && std::abs(*number - whole) <= 1e-9 * whole;
  check<ValueError>(fits, option, "must be a number like 1200, 500k or 20M: got \"{}\"", text);
  return static_cast<int64_t>(whole);
}

}  // namespace carousel::examples
