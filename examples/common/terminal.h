#pragma once

#include <cstdint>
#include <optional>

namespace carousel::examples {

/// Columns of the terminal behind a file descriptor, as it is now; none where there is no terminal, or a dumb one.
std::optional<int64_t> terminal_columns(int descriptor);

}  // namespace carousel::examples
