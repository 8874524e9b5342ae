#pragma once

#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_sight.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/team_memory.h>

#include <cstddef>

/// Inside the attention kernels: which thread does what, and in which memory.
namespace carousel::kernels {

/// Hands out memory, every piece on a cache line of its own; without memory it only counts.
class Pieces {
 public:
  explicit Pieces(std::byte* memory = nullptr) : memory_(memory) {}

  template <class T>
  T* take(int64_t count) {
    constexpr size_t line = 64;
    std::byte* const piece = memory_ == nullptr ? nullptr : memory_ + size_;
    size_ += (static_cast<size_t>(count) * sizeof(T) + line - 1) / line * line;
    return reinterpret_cast<T*>(piece);
  }
  size_t size() const { return size_; }

 private:
  std::byte* memory_;
  size_t size_ = 0;
};

/// Threads for all products of a call.
inline int64_t attention_threads(const AttentionShape& s) {
  constexpr int64_t products_per_nanosecond = 16;
  return threads_for(2 * s.batch * s.heads * s.queries * s.keys * s.width / products_per_nanosecond);
}

/// Whether tasks of whole heads occupy the threads well: all of them, but for `idle` of their time.
inline bool whole_heads(const AttentionShape& s, double idle) {
  const int64_t threads = attention_threads(s), heads = s.batch * s.heads;
  const int64_t turns = (heads + threads - 1) / threads;
  return static_cast<double>(turns * threads - heads) <= idle * static_cast<double>(turns * threads);
}

/// That of the calling thread, which the threads that work for it use, too.
inline TeamMemory& attention_memory() {
  thread_local TeamMemory of_this_thread;
  return of_this_thread;
}

/// Calls body(b, a, range, workspace) for every row, head and `chunk` of the `length` positions. Workspace(shape,
/// chunk, pieces) takes its memory.
template <class Workspace, class Body>
void for_each_task(const AttentionShape& s, int64_t length, int64_t chunk, const Body& body) {
  const int64_t chunks = length == 0 ? 0 : (length + chunk - 1) / chunk, tasks = s.batch * s.heads * chunks;
  if (tasks == 0) return;
  const int64_t shares = std::min<int64_t>(tasks, attention_threads(s));
  TeamMemory& memory = attention_memory();
  Pieces counted;
  Workspace(s, chunk, counted);
  memory.reserve(shares, counted.size());
  // Every thread takes each so-manieth chunk: under a causal mask later ones are more work.
  const auto run_share = [&](int64_t share) {
    Pieces pieces(memory.of_share(share));
    Workspace workspace(s, chunk, pieces);
    for (int64_t task = share; task < tasks; task += shares) {
      const int64_t head = task / chunks, begin = task % chunks * chunk;
      body(head / s.heads, head % s.heads, Range{begin, std::min(length, begin + chunk)}, workspace);
    }
  };
  if (shares == 1) return run_share(0);
  parallel_tasks(shares, run_share);
}

}  // namespace carousel::kernels
