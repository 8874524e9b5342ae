#include "common/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "common/option_values.h"

namespace carousel::examples {

namespace {

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "-", "-5" and "" are values; "-h" is left to CLI11.
bool is_option(const std::string& argument) {
  const size_t start = argument.find_first_not_of('-');
  return argument.size() > 2 && (start == 1 || start == 2) && std::isalpha(static_cast<unsigned char>(argument[start]));
}

// Who meets one wrong name at a time has to start a program as often as there are wrong names.
class Errors {
 public:
  template <class Body>
  void collect(const Body& body) {
    try {
      body();
    } catch (const UsageError& error) {
      texts_.emplace_back(error.what());
    }
  }
  void report() const {
    if (!texts_.empty()) throw UsageError(join(texts_, "; "));
  }

 private:
  std::vector<std::string> texts_;
};

// Whether `name` is `known` with a slip at the first letter: another one, none, one too many, or two in wrong order.
bool slips_at_the_first_letter(std::string_view name, std::string_view known) {
  if (name.size() < 5 || known.size() < 5) return false;
  return name.substr(1) == known.substr(1) || name.substr(1) == known || name == known.substr(1) ||
         (name[0] == known[1] && name[1] == known[0] && name.substr(2) == known.substr(2));
}

}  // namespace

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Spelling::Spelling(const Command& command) : strangers_(command.strangers) {
  for (const OptionGroup& group : command.groups) {
    for (const Field& field : group.fields) {
      add(field.name, field);
      for (const std::string& alias : field.aliases) add(alias, field);
    }
  }
}

// Were a layer to bring a field `steps`, one of the two options would silently win.
void Spelling::add(const std::string& name, const Field& field) {
  const Field* owner = options_.emplace(dashed(name), &field).first->second;
  check<ValueError>(owner == &field, "--" + dashed(name), "must be the name of one option: got fields {} and {}",
                    owner->name, field.name);
}

const Field* Spelling::find(const std::string& name) const {
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : found->second;
}

// The flag that `no-NAME` switches off, or null.
const Field* Spelling::find_negated(const std::string& name) const {
  const Field* const field = name.starts_with("no-") ? find(name.substr(3)) : nullptr;
  return field != nullptr && is_flag(*field) ? field : nullptr;
}

const Stranger* Spelling::find_stranger(const std::string& name) const {
  const auto found = strangers_.find(underscored(name));
  return found == strangers_.end() ? nullptr : &found->second;
}

// Who slips, rarely slips at the first letter; who remembers a part of a name, remembers whole words.
std::string Spelling::nearest(const std::string& name) const {
  if (name.empty()) return "";
  std::vector<std::string> same_letter;
  for (const auto& [known, field] : options_) {
    if (known.front() == name.front()) same_letter.push_back(known);
  }
  if (std::string near = nearest_name(name, same_letter); !near.empty()) return near;
  for (const auto& [known, field] : options_) {
    if (slips_at_the_first_letter(name, known)) return known;
  }
  for (const std::string& known : same_letter) {
    if (name.starts_with(known + "-") || known.starts_with(name + "-")) return known;
  }
  return "";
}

void Spelling::grant(const Stranger& stranger, const std::string& typed, const std::string& value,
                     const std::string& shown) {
  std::string lower = value;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto& granted = stranger.granted;
  const bool any = !granted.empty() && granted.front() == "*";
  check_usage(any || std::find(granted.begin(), granted.end(), lower) != granted.end(), typed, "{}", stranger.advice);
  without_effect_.push_back(stranger.remark.empty() ? shown : fmt::format("{} ({})", shown, stranger.remark));
}

// Reads the argument at `at` and its value, and returns where the next one is.
size_t Spelling::read(const std::vector<std::string>& arguments, size_t at, std::vector<std::string>& result) {
  const std::string& argument = arguments[at];
  const bool has_next = at + 1 < arguments.size();
  if (!is_option(argument)) {
    result.push_back(argument);
    return at + 1;
  }
  const size_t equals = argument.find('=');
  const bool has_value = equals != std::string::npos;
  const std::string value = has_value ? argument.substr(equals + 1) : "";
  const std::string typed = argument.substr(0, equals);
  const std::string name = dashed(typed.substr(typed.find_first_not_of('-')));
  if (name == "help" || name == "version") {
    result.push_back("--" + name);
    return at + 1;
  }
  const Field* const negated = find_negated(name);
  const Field* const field = negated != nullptr ? negated : find(name);
  if (field == nullptr) {
    if (const Stranger* const stranger = find_stranger(name)) {
      const bool takes_next = !has_value && has_next && !is_option(arguments[at + 1]);
      grant(*stranger, typed, takes_next ? arguments[at + 1] : value,
            takes_next ? typed + " " + arguments[at + 1] : argument);
      return at + (takes_next ? 2 : 1);
    }
    const std::string near = nearest(name);
    throw UsageError(fmt::format("[{}] no such option{}", typed,
                                 near.empty() ? "; --help lists them" : fmt::format("; did you mean --{}?", near)));
  }
  check_usage(given_.emplace(field, typed).second, typed, "must be given once: got it again");
  result.push_back("--" + dashed(field->name));
  if (is_flag(*field)) {
    check_usage(negated == nullptr || !has_value, typed, "takes no value: got \"{}\"", argument);
    result.push_back(has_value ? value : negated != nullptr ? "false" : "true");
    return at + 1;
  }
  check_usage(has_value || has_next, typed, "needs a value: got none");
  result.push_back(has_value ? value : arguments[at + 1]);
  return at + (has_value ? 1 : 2);
}

std::vector<std::string> Spelling::normalize(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  Errors errors;
  for (size_t at = 0; at < arguments.size();) {
    if (arguments[at] == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<std::ptrdiff_t>(at), arguments.end());
      break;
    }
    size_t next = at + 1;
    errors.collect([&] { next = read(arguments, at, result); });
    at = next;
  }
  errors.report();
  return result;
}

void Spelling::apply(const Config& config) {
  Errors errors;
  std::map<const Field*, std::string> labels;
  for (const Config::Entry& entry : config.entries()) {
    errors.collect([&] {
      const std::string label = config.label(entry), name = dashed(entry.key);
      if (const Field* const field = find(name)) {
        const auto [known, first] = labels.emplace(field, label);
        check_usage(first, label, "must be given once: got {} too", known->second);
        set_from_config(config, entry, *field);
        given_.emplace(field, label);
      } else if (const Stranger* const stranger = find_stranger(name)) {
        grant(*stranger, label, entry.text, label + " " + entry.json);
      } else {
        const std::string near = underscored(nearest(name));
        throw UsageError(fmt::format("[{}] no such option: got {}{}", label, entry.json,
                                     near.empty() ? "" : fmt::format("; did you mean {}?", near)));
      }
    });
  }
  errors.report();
}

Given Spelling::given() const {
  Given given;
  for (const auto& [field, spelling] : given_) given[field->name] = spelling;
  return given;
}

bool is_typed(const Given& given, const std::string& name) {
  const auto found = given.find(name);
  return found != given.end() && found->second.starts_with('-');
}

std::string spelled(const Given& given, const std::string& name) {
  const auto found = given.find(name);
  return found == given.end() ? "--" + dashed(name) : found->second;
}

}  // namespace carousel::examples
