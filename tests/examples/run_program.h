#pragma once

#include <functional>
#include <string>
#include <vector>

namespace carousel::examples {

struct ProgramResult {
  int exit_code;  ///< of the program; 128 + signal when one ended it
  std::string out;
  std::string err;
};

/// Runs a program of the build to its end. `meanwhile` is called with its process id as soon as it has started.
ProgramResult run_built(const std::string& program, const std::vector<std::string>& arguments,
                        const std::function<void(int pid)>& meanwhile = {});

/// The same with a terminal as standard output: `columns` wide, and `later_columns` once a thousand bytes have come.
ProgramResult run_on_terminal(const std::string& program, const std::vector<std::string>& arguments, int columns,
                              int later_columns);

}  // namespace carousel::examples
