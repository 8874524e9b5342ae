#include "common/patience.h"

#include <carousel/tensor/runtime.h>

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "common/options.h"

namespace carousel::examples {

void wait_patiently(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);  // some 20 microseconds
  execv("/proc/self/exe", argv);
}

void use_threads(int64_t count) {
  const int64_t available = available_threads();
  if (count > available) {
    tell(fmt::format("note: {} threads were asked for; {} can run at a time, and more would be slower: {} it is", count,
                     available, available));
  }
  set_threads(static_cast<int>(std::min(count, available)));
}

}  // namespace carousel::examples
