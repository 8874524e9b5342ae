#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace carousel {

/// One entry of a configuration record: its name, what it may hold, what it is for, and where it lives. The command
/// line, JSON, checkpoints and checks all read the same list of fields.
struct Field {
  using Target = std::variant<int64_t*, double*, bool*, std::string*>;

  std::string name;  ///< snake_case; the command line shows hidden_size as --hidden-size
  Target target;
  std::string help;
  double minimum = -std::numeric_limits<double>::infinity();  ///< of numbers
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  ///< of strings; empty: any
  std::vector<std::string> aliases = {};  ///< names that users of other programs type: "rnn_size", "n_embd"
};
using Fields = std::vector<Field>;

/// Throws ValueError `[owner] field must be in [..]: got ..` for the first field outside its range.
void check_fields(std::string_view owner, const Fields& fields);

/// The record as a JSON object, fields in order.
std::string fields_to_json(const Fields& fields);
/// Sets fields from a JSON object of at most 1 MiB. Throws FormatError for text that is not an object, an unknown name
/// (the nearest one is suggested), one that stands twice, or a value of another type; then checks the ranges of those
/// it names. On an error no field changes.
void fields_from_json(std::string_view owner, const std::string& json, const Fields& fields);

/// "a, b, c".
std::string join(const std::vector<std::string>& names, std::string_view separator = ", ");

/// What to tell a person who typed a name that there is not: "{what} must be one of a, b: got 'x'", and where a name is
/// near, ", did you mean 'a'?".
std::string unknown_name(std::string_view what, std::string_view got, const std::vector<std::string>& names);

/// The name in `names` with the smallest edit distance to `name`, or "" when none is near. For "did you mean".
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace carousel
