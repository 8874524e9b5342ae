#include <carousel/tensor/kernels/available_cpus.h>
#include <carousel/tensor/kernels/threads.h>

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace carousel::kernels {
namespace {

constexpr int64_t least_parallel_work = 1 << 15;

std::atomic<bool> is_forked_child{false};

std::atomic<int>& configured_count() {
  static std::atomic<int> count = [] {
    // A child that waits for its parent's pool waits for ever.
    pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
    return available_cpus();
  }();
  return count;
}

}  // namespace

int thread_count() {
  if (is_forked_child || omp_in_parallel() || omp_get_max_active_levels() == 0) return 1;
  return std::min<int>(configured_count(), omp_get_thread_limit());
}

int available_threads() { return std::min<int>(available_cpus(), omp_get_thread_limit()); }

void set_thread_count(int count) { configured_count() = count; }

int threads_for(int64_t work) { return work < least_parallel_work ? 1 : thread_count(); }

}  // namespace carousel::kernels
