#pragma once

namespace carousel::examples {

/// Has the OpenMP threads of this program spin for microseconds, not milliseconds, before they sleep: on a machine that
/// others use too, a spinning thread takes the core that the thread it waits for needs, and training was measured up to
/// 40 times slower. libgomp reads its settings before main() begins, so the program is started once more, in the same
/// process, with GOMP_SPINCOUNT set. A user's own OMP_WAIT_POLICY or GOMP_SPINCOUNT is left alone. Call it first in
/// main(); where the program cannot be started again, it goes on as it is.
void wait_patiently(char** argv);

}  // namespace carousel::examples
