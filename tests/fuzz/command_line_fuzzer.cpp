// Words of a command line, one a line.
#include <sstream>

#include "common/options.h"
#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  using namespace carousel::examples;
  return fuzz::expect_refusal_or_success([&] {
    int64_t whole = 1;
    double number = 0.5;
    bool flag = false;
    std::string text, file;
    const Command command = {.name = "go",
                             .help = "",
                             .positionals = {{.name = "file", .target = &file, .help = ""}},
                             .groups = {{"All",
                                         {{.name = "whole", .target = &whole, .help = "", .minimum = 1, .maximum = 9},
                                          {.name = "number", .target = &number, .help = "", .aliases = {"share_of"}},
                                          {.name = "flag", .target = &flag, .help = ""},
                                          {.name = "text", .target = &text, .help = "", .choices = {"", "a", "b"}}}}},
                             .strangers = {{"device", {.advice = "must be cpu", .granted = {"cpu"}}}}};
    std::vector<std::string> arguments;
    std::istringstream lines{std::string(fuzz::bytes(data, size))};
    for (std::string line; std::getline(lines, line);) arguments.push_back(line);
    parse_command_line({.name = "fuzz", .help = "", .commands = {command}}, arguments);
    if (whole < 1 || whole > 9) __builtin_trap();
  });
}
