#include "common/patience.h"

#include <unistd.h>

#include <cstdlib>

namespace carousel::examples {

void wait_patiently(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);  // some 20 microseconds
  execv("/proc/self/exe", argv);
}

}  // namespace carousel::examples
