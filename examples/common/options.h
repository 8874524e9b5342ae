#pragma once

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

/// Names of the options that a command line gave, with the spelling that was typed: hidden_size -> "--rnn_size".
using Given = std::map<std::string, std::string>;

/// One thing that a program does: `char_lm train`.
struct Command {
  std::string name = {};  ///< empty in a program that does only one thing
  std::string help = {};
  std::string footer = {};  ///< what --help says below the options
  Fields positionals = {};  ///< without a name in front, all required
  std::vector<OptionGroup> groups = {};
  /// Options of other programs that have no counterpart here, in snake_case, and what to tell who types one.
  std::map<std::string, std::string> strangers = {};
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
  std::string text = {};  ///< of --help or --version, when there is no command
};

/// Reads `arguments` (without the program's name) into the targets of the chosen command.
///
/// A field `batch_size` is the option `--batch-size VALUE` or `--batch-size=VALUE`; a bool needs no value, and
/// `--no-gate` or `--gate=false` switches one off. Spellings of other programs are taken too: the field's aliases,
/// underscores, and one dash before a long name (`-rnn_size 128`). Whole numbers are decimal (010 and 1e3 are errors)
/// and must fit; numbers must be finite; ranges and choices are those of the field. Throws UsageError naming option and
/// value, with the nearest name for one that is unknown; ValueError when two fields claim one name.
Request parse_command_line(const Program& program, const std::vector<std::string>& arguments);

/// Writes a line to stderr, where notices and errors go. That it cannot be written is no reason to fail.
void tell(const std::string& line);

/// Runs `body` and turns an error into one line on stderr. Returns the exit code: the body's, 2 after a UsageError, 1
/// after any other error.
int report_errors(std::string_view program, const std::function<int()>& body);

/// The body of main(): parses, runs the command, reports errors, of standard output too. 0 after --help and --version.
/// A reader that goes away (`| head`) ends the process quietly. Starts the program anew when that lets its threads
/// wait patiently (common/patience.h).
int run_program(const Program& program, int argc, char** argv);

/// The value that `arguments` give to option `name` or one of `aliases`, or `otherwise`. For the one option that
/// decides which others there are.
std::string peek_option(const std::vector<std::string>& arguments, const Field& option);

}  // namespace carousel::examples
