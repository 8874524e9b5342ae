#include "common/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace carousel::examples {

std::optional<int64_t> terminal_columns(int descriptor) {
  const char* const kind = std::getenv("TERM");
  if (isatty(descriptor) != 1 || kind == nullptr || std::string_view(kind) == "dumb") return std::nullopt;
  winsize window{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return known ? window.ws_col : 80;
}

}  // namespace carousel::examples
