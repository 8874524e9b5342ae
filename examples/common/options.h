#pragma once

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/config.h"

namespace carousel::examples {

/// A wrong command line. The text names the option and the value: `[--batch-size] must be a whole number: got "foo"`.
class UsageError : public Error {
  using Error::Error;
};

/// Options that --help shows under one title.
struct OptionGroup {
  std::string title;
  Fields fields;  ///< their targets hold the defaults; one that is NaN or out of range is none, and is not shown
};

/// Names of the options that were given, each with its spelling: hidden_size -> "--rnn_size" of the command line, or
/// "run.json: hidden_size" of a configuration file.
using Given = std::map<std::string, std::string>;
/// Whether the command line itself gave the option `name`: that beats what stands in a configuration file.
bool is_typed(const Given& given, const std::string& name);
/// How to name the option to a person: as it was given, or else "--hidden-size".
std::string spelled(const Given& given, const std::string& name);

/// An option of another program that has no counterpart here.
struct Stranger {
  std::string advice;                     ///< what to tell who gives it
  std::vector<std::string> granted = {};  ///< values, in lower case, that ask for what happens anyway; "*": any
  std::string remark = {};                ///< what happens, when the name does not say it
};
using Strangers = std::map<std::string, Stranger>;  ///< by name in snake_case

/// One thing that a program does: `char_lm train`.
struct Command {
  std::string name = {};  ///< empty in a program that does only one thing
  std::string help = {};
  std::string footer = {};  ///< what --help says below the options
  Fields positionals = {};  ///< without a name in front, all required
  std::vector<OptionGroup> groups = {};
  Strangers strangers = {};
  const Config* config = nullptr;  ///< sets what the command line leaves open; null: none is taken
  /// Rules between options; a ValueError it throws counts as a UsageError. Not called for --help.
  std::function<void(const Given&)> check = {};
  std::function<int()> run = {};  ///< returns the exit code
};

struct Program {
  std::string name;
  std::string help;
  std::vector<Command> commands;  ///< one without a name, or several with names
};

/// What the command line asked for: a command whose targets are set, or a text to print and no more.
struct Request {
  const Command* command = nullptr;
  std::string text = {};    ///< of --help or --version, when there is no command
  std::string notice = {};  ///< what was given without effect; mostly empty
};

/// Reads `arguments` (without the program's name) into the targets of the chosen command.
///
/// A field `batch_size` is the option `--batch-size VALUE` or `--batch-size=VALUE`; a bool needs no value, and
/// `--no-gate` or `--gate=false` switches one off. Spellings of other programs are taken too: the field's aliases,
/// underscores, and one dash before a long name (`-rnn_size 128`). Whole numbers are decimal (010 and 1e3 are errors)
/// and must fit; numbers must be finite; ranges and choices are those of the field. Throws UsageError naming option and
/// value, with the nearest name for one that is unknown, and for all options at once that are; ValueError when two
/// fields claim one name. --help is written for a terminal of `width` columns.
Request parse_command_line(const Program& program, const std::vector<std::string>& arguments, int64_t width = 80);

/// Writes a line to stderr, where notices and errors go. That it cannot be written is no reason to fail.
void tell(const std::string& line);

/// Runs `body` and turns an error into one line on stderr. Returns the exit code: the body's, 2 after a UsageError, 1
/// after any other error.
int report_errors(std::string_view program, const std::function<int()>& body);

/// The body of main(): parses, runs the command, reports errors, of standard output too. 0 after --help and --version.
/// A reader that goes away (`| head`) ends the process quietly. Starts the program anew when that lets its threads
/// wait patiently (common/patience.h).
int run_program(const Program& program, int argc, char** argv);

/// The value that `arguments` give to option `name` or one of its aliases, else that of the configuration file, else
/// the default. For the few options that decide which others there are.
std::string peek_option(const std::vector<std::string>& arguments, const Config& config, const Field& option);

}  // namespace carousel::examples
