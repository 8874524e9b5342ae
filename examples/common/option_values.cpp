#include "common/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/numbers.h"

namespace carousel::examples {

namespace {

template <class Number>
void set_number(std::string_view option, const Field& field, std::string_view what, std::optional<Number> value,
                std::string_view text, Number& target) {
  check_usage(value.has_value(), option, "must be {}: got \"{}\"", what, text);
  const auto number = static_cast<double>(*value);
  check_usage(number >= field.minimum && number <= field.maximum, option, "must be in [{}, {}]: got {}", field.minimum,
              field.maximum, text);
  target = *value;
}

// Stands in the variant's order: int64, double, bool, string.
struct SetTarget {
  std::string_view option;
  const Field& field;
  const std::string& text;

  void operator()(int64_t* target) const {
    set_number(option, field, "a whole number", parse_integer(text), text, *target);
  }
  void operator()(double* target) const {
    set_number(option, field, "a finite number", parse_number(text), text, *target);
  }
  void operator()(bool* target) const {
    check_usage(text == "true" || text == "false", option, "must be true or false: got \"{}\"", text);
    *target = text == "true";
  }
  void operator()(std::string* target) const {
    const auto& choices = field.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
      const std::string near = nearest_name(text, choices);
      throw UsageError(fmt::format("[{}] must be one of {}: got \"{}\"{}", option, join(choices, ", "), text,
                                   near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    *target = text;
  }
};

// Stands in the variant's order too.
struct IsSet {
  const Field& field;

  template <class Number>
  bool operator()(const Number* target) const {
    const auto number = static_cast<double>(*target);
    return number >= field.minimum && number <= field.maximum;
  }
  bool operator()(const bool*) const { return true; }
  bool operator()(const std::string*) const { return true; }
};

}  // namespace

bool is_flag(const Field& field) { return std::holds_alternative<bool*>(field.target); }

void set_option(std::string_view option, const Field& field, const std::string& text) {
  std::visit(SetTarget{option, field, text}, field.target);
}

std::string value_text(const Field& field) {
  return std::visit([](const auto* target) { return fmt::format("{}", *target); }, field.target);
}

bool is_set(const Field& field) { return std::visit(IsSet{field}, field.target); }

}  // namespace carousel::examples
