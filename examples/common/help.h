#pragma once

#include <string>

#include "common/options.h"

namespace carousel::examples {

/// What --help prints, in lines of at most `width` columns where words allow it: for a command its options by group,
/// with their defaults; without one, the commands.
std::string help_text(const Program& program, const Command* command, int64_t width);

}  // namespace carousel::examples
