#include "common/options.h"

#include <carousel/tensor/runtime.h>
#include <carousel/tensor/version.h>

#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

#include "common/numbers.h"
#include "common/patience.h"

namespace carousel::examples {

namespace {

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

template <class... Args>
void check_usage(bool condition, std::string_view option, fmt::format_string<Args...> rule, Args&&... args) {
  check<UsageError>(condition, option, rule, std::forward<Args>(args)...);
}

bool is_flag(const Field& field) { return std::holds_alternative<bool*>(field.target); }

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
  std::string_view option;  // as it was typed
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
struct DefaultText {
  const Field& field;

  template <class Number>
  std::string operator()(const Number* target) const {
    const auto number = static_cast<double>(*target);
    return number >= field.minimum && number <= field.maximum ? fmt::to_string(*target) : "";
  }
  std::string operator()(const bool* target) const { return *target ? "true" : ""; }
  std::string operator()(const std::string* target) const { return *target; }
};

struct TypeName {
  const std::string& standard;

  std::string operator()(const int64_t*) const { return "INT"; }
  std::string operator()(const double*) const { return "NUMBER"; }
  std::string operator()(const bool*) const { return standard.empty() ? "" : "BOOL"; }  // --json needs no value
  std::string operator()(const std::string*) const { return "TEXT"; }
};

// Brings options to the spelling that CLI11 knows, `--rnn_size=5` to `--hidden-size 5`, and keeps what was typed.
class Spelling {
 public:
  explicit Spelling(const Command& command) : strangers_(command.strangers) {
    for (const OptionGroup& group : command.groups) {
      for (const Field& field : group.fields) {
        add(field.name, field);
        for (const std::string& alias : field.aliases) add(alias, field);
      }
    }
  }

  std::vector<std::string> normalize(const std::vector<std::string>& arguments) {
    std::vector<std::string> result;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      if (argument == "--") {
        result.insert(result.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
        break;
      }
      if (!is_option(argument)) {
        result.push_back(argument);
        continue;
      }
      const size_t equals = argument.find('=');
      const std::string typed = argument.substr(0, equals);
      const std::string name = dashed(typed.substr(typed.find_first_not_of('-')));
      if (name == "help" || name == "version") {
        result.push_back("--" + name);
        continue;
      }
      const Field* negated = find_negated(name);
      const Field& field = negated != nullptr ? *negated : find(name, typed);
      check_usage(typed_.emplace(&field, typed).second, typed, "must be given once: got it again");
      result.push_back("--" + dashed(field.name));
      if (is_flag(field)) {
        check_usage(negated == nullptr || equals == std::string::npos, typed, "takes no value: got \"{}\"", argument);
        const std::string alone = negated != nullptr ? "false" : "true";
        result.push_back(equals != std::string::npos ? argument.substr(equals + 1) : alone);
      } else {
        check_usage(equals != std::string::npos || i + 1 < arguments.size(), typed, "needs a value: got none");
        result.push_back(equals != std::string::npos ? argument.substr(equals + 1) : arguments[++i]);
      }
    }
    return result;
  }

  const std::string& typed(const Field& field) const { return typed_.at(&field); }

  Given given() const {
    Given given;
    for (const auto& [field, typed] : typed_) given[field->name] = typed;
    return given;
  }

 private:
  // Were a layer to bring a field `steps`, one of the two options would silently win.
  void add(const std::string& name, const Field& field) {
    const Field* owner = options_.emplace(dashed(name), &field).first->second;
    check<ValueError>(owner == &field, "--" + dashed(name), "must be the name of one option: got fields {} and {}",
                      owner->name, field.name);
  }

  // "-", "-5" and "" are values; "-h" is left to CLI11.
  static bool is_option(const std::string& argument) {
    const size_t start = argument.find_first_not_of('-');
    return argument.size() > 2 && (start == 1 || start == 2) &&
           std::isalpha(static_cast<unsigned char>(argument[start]));
  }

  // The flag that `no-NAME` switches off, or null.
  const Field* find_negated(const std::string& name) const {
    const auto found = name.starts_with("no-") ? options_.find(name.substr(3)) : options_.end();
    return found != options_.end() && is_flag(*found->second) ? found->second : nullptr;
  }

  const Field& find(const std::string& name, const std::string& typed) const {
    const auto found = options_.find(name);
    if (found != options_.end()) return *found->second;
    std::string stranger = name;
    std::replace(stranger.begin(), stranger.end(), '-', '_');
    if (const auto advice = strangers_.find(stranger); advice != strangers_.end()) {
      throw UsageError(fmt::format("[{}] {}", typed, advice->second));
    }
    std::vector<std::string> names;  // who slips, rarely slips at the first letter
    for (const auto& [known, field] : options_) {
      if (known.front() == name.front()) names.push_back(known);
    }
    const std::string near = nearest_name(name, names);
    throw UsageError(fmt::format("[{}] no such option{}", typed,
                                 near.empty() ? "; --help lists them" : fmt::format("; did you mean --{}?", near)));
  }

  const std::map<std::string, std::string>& strangers_;
  std::map<std::string, const Field*> options_;
  std::map<const Field*, std::string> typed_;
};

void add_option(CLI::App& app, const std::string& title, const Field& field, const Spelling& spelling) {
  std::string help = field.help;
  if (!field.choices.empty()) help += ": " + join(field.choices, "|");
  for (const std::string& alias : field.aliases) {
    help +=
        (alias == field.aliases.front() ? " (also --" : ", --") + alias + (alias == field.aliases.back() ? ")" : "");
  }
  const std::string name = "--" + dashed(field.name);
  const auto set = [&field, &spelling](const CLI::results_t& values) {
    std::visit(SetTarget{spelling.typed(field), field, values.front()}, field.target);
    return true;
  };
  const std::string standard = std::visit(DefaultText{field}, field.target);
  CLI::Option* option = app.add_option(name, set, help);
  option->default_str(standard);
  option->type_name(std::visit(TypeName{standard}, field.target));
  option->group(title);
}

void add_positional(CLI::App& app, const Field& field) {
  const auto set = [&field](const CLI::results_t& values) {
    std::visit(SetTarget{field.name, field, values.front()}, field.target);
    return true;
  };
  app.add_option(field.name, set, field.help)->required()->type_name("");
}

std::string names_of(const Program& program) {
  std::vector<std::string> names;
  for (const Command& command : program.commands) names.push_back(command.name);
  return join(names, ", ");
}

// The command that the first argument names; the only one where commands have no names; none for --help or --version.
const Command* choose_command(const Program& program, const std::vector<std::string>& arguments) {
  if (program.commands.front().name.empty()) return &program.commands.front();
  check_usage(!arguments.empty(), "command", "must be one of {}: got none", names_of(program));
  std::vector<std::string> names;
  for (const Command& command : program.commands) {
    if (command.name == arguments.front()) return &command;
    names.push_back(command.name);
  }
  if (arguments.front().starts_with('-')) return nullptr;
  const std::string near = nearest_name(arguments.front(), names);
  throw UsageError(fmt::format("[command] must be one of {}: got \"{}\"{}", names_of(program), arguments.front(),
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)));
}

void fill_app(CLI::App& app, const Command& command, const Spelling& spelling) {
  app.footer(command.footer);
  for (const Field& field : command.positionals) add_positional(app, field);
  for (const OptionGroup& group : command.groups) {
    for (const Field& field : group.fields) add_option(app, group.title, field, spelling);
  }
}

std::string version_text(const Program& program) {
  return fmt::format("{} of Carousel {}\n{}\n", program.name, version(), to_string(runtime_info()));
}

}  // namespace

Request parse_command_line(const Program& program, const std::vector<std::string>& arguments) {
  const Command* command = choose_command(program, arguments);
  CLI::App app(program.help, program.name);
  app.set_version_flag("--version", [&program] { return version_text(program); });
  const Command none;
  Spelling spelling(command != nullptr ? *command : none);
  if (program.commands.front().name.empty()) {
    fill_app(app, *command, spelling);
  } else {
    app.require_subcommand(1);
    for (const Command& each : program.commands) {
      CLI::App* sub = app.add_subcommand(each.name, each.help);
      sub->set_version_flag("--version", [&program] { return version_text(program); });
      if (&each == command) fill_app(*sub, each, spelling);
    }
  }

  std::vector<std::string> normalized = spelling.normalize(arguments);
  std::reverse(normalized.begin(), normalized.end());  // CLI11 takes them from the back
  try {
    app.parse(normalized);
  } catch (const CLI::CallForVersion& request) {
    return {.text = request.what()};
  } catch (const CLI::CallForHelp&) {
    return {.text = app.help()};
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("[arguments] {}", error.what()));
  }
  if (command->check) {
    try {
      command->check(spelling.given());
    } catch (const ValueError& error) {
      throw UsageError(error.what());
    }
  }
  return {.command = command};
}

void tell(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

int report_errors(std::string_view program, const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    tell(fmt::format("{}: {}", program, error.what()));
    return 2;
  } catch (const std::exception& error) {
    tell(fmt::format("{}: {}", program, error.what()));
    return 1;
  }
}

namespace {

// A closed standard stream would let the next file that is opened take its number, and what is printed end up in it.
void open_standard_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) == -1) open("/dev/null", O_RDWR);
  }
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  wait_patiently(argv);
  open_standard_streams();
  std::signal(SIGPIPE, SIG_DFL);  // whatever the parent had it do
  return report_errors(program.name, [&] {
    const Request request = parse_command_line(program, {argv + 1, argv + argc});
    if (request.command == nullptr) fmt::print("{}", request.text);
    const int code = request.command == nullptr ? 0 : request.command->run();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    check<IoError>(written, "output", "cannot write: {}", std::strerror(errno));
    return code;
  });
}

std::string peek_option(const std::vector<std::string>& arguments, const Field& option) {
  std::vector<std::string> names = option.aliases;
  names.push_back(option.name);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string typed = dashed(arguments[i].substr(0, equals));
    for (const std::string& name : names) {
      if (typed != "--" + dashed(name) && typed != "-" + dashed(name)) continue;
      if (equals != std::string::npos) return arguments[i].substr(equals + 1);
      if (i + 1 < arguments.size()) return arguments[i + 1];
    }
  }
  return *std::get<std::string*>(option.target);
}

}  // namespace carousel::examples
