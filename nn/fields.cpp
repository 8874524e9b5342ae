#include <carousel/nn/fields.h>

#include <carousel/tensor/error.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

template <class Number>
void check_number(std::string_view owner, const Field& field, Number value) {
  const double number = static_cast<double>(value);
  check<ValueError>(std::isfinite(number) && number >= field.minimum && number <= field.maximum, owner,
                    "{} must be in [{}, {}]: got {}", field.name, field.minimum, field.maximum, value);
}

void check_string(std::string_view owner, const Field& field, const std::string& value) {
  const bool known =
      field.choices.empty() || std::find(field.choices.begin(), field.choices.end(), value) != field.choices.end();
  if (!known) throw ValueError(fmt::format("[{}] {}", owner, unknown_name(field.name, value, field.choices)));
}

// Levenshtein's distance: insertions, deletions and substitutions that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void check_fields(std::string_view owner, const Fields& fields) {
  for (const Field& field : fields) {
    if (const auto* integer = std::get_if<int64_t*>(&field.target)) {
      check_number(owner, field, **integer);
    } else if (const auto* real = std::get_if<double*>(&field.target)) {
      check_number(owner, field, **real);
    } else if (const auto* text = std::get_if<std::string*>(&field.target)) {
      check_string(owner, field, **text);
    }
  }
}

std::string join(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) {
    if (&name != &names.front()) text += separator;
    text += name;
  }
  return text;
}

std::string unknown_name(std::string_view what, std::string_view got, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(got, names);
  return fmt::format("{} must be one of {}: got '{}'", what, join(names), got) +
         (nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest));
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string nearest;
  size_t smallest = (name.size() + 2) / 3 + 1;  // a third of the letters wrong is no longer a slip
  for (const std::string& candidate : names) {
    const size_t longer = std::max(name.size(), candidate.size()), shorter = std::min(name.size(), candidate.size());
    if (longer - shorter >= smallest) continue;  // at least so far: a name of a megabyte costs nothing
    const size_t distance = edit_distance(name, candidate);
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace carousel
