#pragma once

#include <cstdint>

namespace carousel::examples {

/// Has the OpenMP threads of this program spin for microseconds, not milliseconds, before they sleep: on a machine that
/// others use too, a spinning thread takes the core that the thread it waits for needs, and training was measured up to
/// 40 times slower. libgomp reads its settings before main() begins, so the program is started once more, in the same
/// process, with GOMP_SPINCOUNT set. A user's own OMP_WAIT_POLICY or GOMP_SPINCOUNT is left alone. Call it first in
/// main(); where the program cannot be started again, it goes on as it is.
void wait_patiently(char** argv);

/// set_threads for a program's --threads: at most as many as this process has CPUs, and a line on stderr when that is
/// fewer than `count`. More would take turns, and wait for those that wait for a turn.
void use_threads(int64_t count);

}  // namespace carousel::examples
