#pragma once

#include <cstdint>

namespace carousel::kernels {

/// Threads that a parallel region may use: what `set_thread_count` said, else `available_cpus()`, but no more than
/// OpenMP will give (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS); 1 inside a parallel region, and 1 in a forked child,
/// whose OpenMP pool stayed behind in the parent. For num_threads clauses.
int thread_count();
int available_threads();  ///< the second, within what OpenMP will give
void set_thread_count(int count);

/// The same for a loop of `work` elementary operations (about a nanosecond each): 1 where waking threads costs more
/// than it saves.
int threads_for(int64_t work);

}  // namespace carousel::kernels
