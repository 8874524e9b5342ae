#include "common/options.h"

#include <carousel/tensor/runtime.h>
#include <carousel/tensor/version.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>

#include "common/help.h"
#include "common/option_values.h"
#include "common/patience.h"
#include "common/spelling.h"
#include "common/terminal.h"

namespace carousel::examples {

namespace {

void add_option(CLI::App& app, const Field& field, const Spelling& spelling) {
  const auto set = [&field, &spelling](const CLI::results_t& values) {
    set_option(spelling.given_as(field), field, values.front());
    return true;
  };
  app.add_option("--" + dashed(field.name), set);
}

void add_positional(CLI::App& app, const Field& field) {
  const auto set = [&field](const CLI::results_t& values) {
    set_option(field.name, field, values.front());
    return true;
  };
  app.add_option(field.name, set)->required();
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
  for (const Field& field : command.positionals) add_positional(app, field);
  for (const OptionGroup& group : command.groups) {
    for (const Field& field : group.fields) add_option(app, field, spelling);
  }
}

std::string version_text(const Program& program) {
  return fmt::format("{} of Carousel {}\n{}\n", program.name, version(), to_string(runtime_info()));
}

}  // namespace

Request parse_command_line(const Program& program, const std::vector<std::string>& arguments, int64_t width) {
  const Command* command = choose_command(program, arguments);
  CLI::App app(program.help, program.name);
  app.set_version_flag("--version", [&program] { return version_text(program); });
  const Command none;
  Spelling spelling(command != nullptr ? *command : none);
  std::vector<std::string> normalized = spelling.normalize(arguments);
  if (command != nullptr && command->config != nullptr) spelling.apply(*command->config);
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

  std::reverse(normalized.begin(), normalized.end());  // CLI11 takes them from the back
  try {
    app.parse(normalized);
  } catch (const CLI::CallForVersion& request) {
    return {.text = request.what()};
  } catch (const CLI::CallForHelp&) {
    return {.text = help_text(program, command, width)};
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
  const std::vector<std::string>& idle = spelling.without_effect();
  return {.command = command, .notice = idle.empty() ? "" : "note: without effect here: " + join(idle)};
}

namespace {

// What a file holds may be quoted in an error: control characters would break the line, or command the terminal.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {
      line += c == '\n' ? "\\n" : fmt::format("\\x{:02x}", byte);
    }
  }
  return line;
}

}  // namespace

void tell(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

int report_errors(std::string_view program, const std::function<int()>& body) {
  const auto tell_error = [program](std::string_view text) { tell(fmt::format("{}: {}", program, one_line(text))); };
  try {
    return body();
  } catch (const UsageError& error) {
    tell_error(error.what());
    return 2;
  } catch (const std::filesystem::filesystem_error& error) {  // of looking at a path: too long, no permission
    tell_error(fmt::format("[file] cannot use {}: {}", error.path1().string(), error.code().message()));
    return 1;
  } catch (const std::bad_alloc&) {
    tell_error("[memory] there is too little for this");
    return 1;
  } catch (const std::exception& error) {
    tell_error(error.what());
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
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing, not the end
  return report_errors(program.name, [&] {
    constexpr int64_t narrowest = 50, widest = 120;  // a longer line is hard to read
    const int64_t width = std::clamp(terminal_columns(STDOUT_FILENO).value_or(80), narrowest, widest);
    const Request request = parse_command_line(program, {argv + 1, argv + argc}, width);
    if (!request.notice.empty()) tell(request.notice);
    if (request.command == nullptr) fmt::print("{}", request.text);
    const int code = request.command == nullptr ? 0 : request.command->run();
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    check<IoError>(written, "output", "cannot write: {}", std::strerror(errno));
    return code;
  });
}

std::string peek_option(const std::vector<std::string>& arguments, const Config& config, const Field& option) {
  std::vector<std::string> names = {dashed(option.name)};
  for (const std::string& alias : option.aliases) names.push_back(dashed(alias));
  const auto is_it = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('='), start = arguments[i].find_first_not_of('-');
    if (start != 1 && start != 2) continue;
    if (!is_it(dashed(arguments[i].substr(start, equals - start)))) continue;
    if (equals != std::string::npos) return arguments[i].substr(equals + 1);
    if (i + 1 < arguments.size()) return arguments[i + 1];
  }
  for (const Config::Entry& entry : config.entries()) {
    if (is_it(dashed(entry.key)) && entry.type == Config::Type::text) return entry.text;
  }
  return *std::get<std::string*>(option.target);
}

}  // namespace carousel::examples
