#pragma once

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>

#include <string>
#include <string_view>

#include "common/options.h"

namespace carousel::examples {

/// Throws UsageError `[option] rule` unless `condition` holds.
template <class... Args>
void check_usage(bool condition, std::string_view option, fmt::format_string<Args...> rule, Args&&... args) {
  check<UsageError>(condition, option, rule, std::forward<Args>(args)...);
}

bool is_flag(const Field& field);

/// Sets a field from what was typed. Throws UsageError naming `option` and the text unless it is of the field's type,
/// in its range and one of its choices.
void set_option(std::string_view option, const Field& field, const std::string& text);

/// What the field holds, as set_option reads it.
std::string value_text(const Field& field);
/// Whether the field holds a value that it may hold. An option whose default follows from others holds none until then:
/// NaN, or a number out of range.
bool is_set(const Field& field);

}  // namespace carousel::examples
