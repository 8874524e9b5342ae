#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace carousel::examples {

/// A whole number in decimal: "010", "1e3", "0x10", "10x", "+5", " 5", "" and what does not fit into 64 bits
/// are nothing.
std::optional<int64_t> parse_integer(std::string_view text);
/// A finite decimal number: "0.5", "1e-3", "-2"; "nan", "inf", "0x1p3", "1e999" and trailing text are nothing.
std::optional<double> parse_number(std::string_view text);

/// A time as people write it: "90", "90s", "5m", "1.5h". Throws ValueError naming `option` unless it is > 0.
double parse_seconds(std::string_view option, std::string_view text);
/// A number of things: "1200", "500k", "0.8M", "1G" (powers of 1,000). Throws ValueError naming `option` unless it is a
/// whole number > 0.
int64_t parse_count(std::string_view option, std::string_view text);

}  // namespace carousel::examples
