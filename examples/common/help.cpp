#include "common/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "common/option_values.h"
#include "common/spelling.h"

namespace carousel::examples {

namespace {

constexpr size_t names_width = 26;  // more is for names so long that their help begins below them

// One line, broken between words; what does not fit goes on in column `hang`.
std::string wrapped(const std::string& line, size_t hang, int64_t width) {
  const auto most = static_cast<size_t>(width);
  std::string text;
  std::string rest = line;
  while (rest.size() > most) {
    const size_t first_word = rest.find_first_not_of(' ');
    size_t at = rest.rfind(' ', most);
    if (at == std::string::npos || at <= std::max(first_word, hang)) at = rest.find(' ', std::max(most, first_word));
    if (at == std::string::npos) break;
    text += rest.substr(0, rest.find_last_not_of(' ', at) + 1) + "\n";
    rest = std::string(hang, ' ') + rest.substr(rest.find_first_not_of(' ', at));
  }
  return text + rest.substr(0, rest.find_last_not_of(' ') + 1) + "\n";
}

// A name and what it means, side by side.
std::string entry(const std::string& name, const std::string& help, int64_t width) {
  const std::string left = "  " + name;
  if (left.size() + 2 > names_width) {
    return left + "\n" + wrapped(std::string(names_width, ' ') + help, names_width, width);
  }
  return wrapped(fmt::format("{:<{}}{}", left, names_width, help), names_width, width);
}

// Stands in the variant's order: int64, double, bool, string.
constexpr const char* type_names[] = {" INT", " NUMBER", " BOOL", " TEXT"};

bool is_off(const Field& field) { return is_flag(field) && !*std::get<bool*>(field.target); }

// A flag that is off needs no value.
std::string name_of(const Field& field) {
  return "--" + dashed(field.name) + (is_off(field) ? "" : type_names[field.target.index()]);
}

// Empty when there is none to be told, or none that a line can show.
std::string default_of(const Field& field) {
  const std::string text = is_set(field) && !is_off(field) ? value_text(field) : "";
  return text.find('\n') == std::string::npos ? text : "";
}

std::string help_of(const Field& field) {
  std::vector<std::string> remarks;
  if (const std::string standard = default_of(field); !standard.empty()) remarks.push_back("default " + standard);
  std::vector<std::string> aliases;
  for (const std::string& alias : field.aliases) aliases.push_back("--" + alias);
  if (!aliases.empty()) remarks.push_back("also " + join(aliases));
  return field.help + (field.choices.empty() ? "" : ": " + join(field.choices, "|")) +
         (remarks.empty() ? "" : " (" + join(remarks, "; ") + ")");
}

// Lines as they are; one that is too long goes on below its last column, which two spaces stand before.
std::string footer_text(const std::string& footer, int64_t width) {
  std::string text;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const size_t gap = line.rfind("  ");
    text += wrapped(line, gap == std::string::npos ? 0 : gap + 2, width);
  }
  return text;
}

std::string list_of_commands(const Program& program, int64_t width) {
  std::string text = "\nCommands:\n";
  for (const Command& each : program.commands) text += entry(each.name, each.help, width);
  return text;
}

std::string options_of(const Command& command, int64_t width) {
  std::string text;
  if (!command.positionals.empty()) text += "\nArguments:\n";
  for (const Field& field : command.positionals) text += entry(field.name, field.help, width);
  for (const OptionGroup& group : command.groups) {
    text += "\n" + group.title + ":\n";
    for (const Field& field : group.fields) text += entry(name_of(field), help_of(field), width);
  }
  return text;
}

}  // namespace

std::string help_text(const Program& program, const Command* command, int64_t width) {
  std::string usage = "Usage: " + program.name;
  if (command == nullptr) {
    usage += " COMMAND [OPTIONS]";
  } else {
    if (!command->name.empty()) usage += " " + command->name;
    for (const Field& field : command->positionals) usage += " " + field.name;
    usage += " [OPTIONS]";
  }
  const std::string& about = command == nullptr || command->help.empty() ? program.help : command->help;
  std::string text = usage + "\n" + (about.empty() ? "" : wrapped(about, 0, width));
  text += command == nullptr ? list_of_commands(program, width) : options_of(*command, width);
  text += "\nAbout:\n" + entry("-h, --help", "this text", width) +
          entry("--version", "version, and what computes: BLAS, SIMD, threads", width);
  if (command == nullptr) return text + fmt::format("\n{} COMMAND --help tells of one.\n", program.name);
  return command->footer.empty() ? text : text + "\n" + footer_text(command->footer, width);
}

}  // namespace carousel::examples
