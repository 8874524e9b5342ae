#include <carousel/tensor/kernels/blocked_product.h>
#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/product.h>
#include <carousel/tensor/kernels/team_memory.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

constexpr int64_t depth = 256;           // rows of B in a block: one panel of them stays in the first-level cache
constexpr int64_t block_columns = 1024;  // columns of B in a block
constexpr int64_t most_rows = 64;        // of C in a task
constexpr int64_t tasks_wanted = 16;     // so that no thread waits long for the last

/// Columns of a transposed A lie this far apart once they are copied: a power of two would crowd few sets of a cache.
constexpr int64_t copy_stride = most_rows + 16;

/// Calls body(0), .. body(tasks - 1) on the threads of the team that all call it, or alone.
template <class Body>
void share(int team, int64_t tasks, const Body& body) {
  if (team == 1) {  // not by OpenMP, which would share with the team of a caller
    for (int64_t task = 0; task < tasks; ++task) body(task);
  } else {
#pragma omp for schedule(dynamic)
    for (int64_t task = 0; task < tasks; ++task) body(task);
  }
}

int64_t rows_of_a_task(int64_t m) {
  constexpr int64_t tile = 8;
  const int64_t even = (m + tasks_wanted - 1) / tasks_wanted;
  return std::clamp((even + tile - 1) / tile * tile, tile, most_rows);
}

template <class T>
struct Call {
  int64_t m, n, k;
  const Factor<T>&a, &b;
  const T* bias;
  T* c;
  int64_t c_stride;
  Into into;

  /// What each thread of the team does.
  void run(int team, T* b_memory, T* a_memory) const {
    const int64_t rows = rows_of_a_task(m), tasks = (m + rows - 1) / rows;
    for (int64_t j = 0; j < n; j += block_columns) {
      for (int64_t l = 0; l == 0 || l < k; l += depth) {  // also without a k: C is the bias then
        const int64_t inner = std::min(depth, k - l);
        const PackedBlock<T> block(inner, std::min(block_columns, n - j), b_memory);
        share(team, block.panel_count(), [&](int64_t panel) { block.pack(panel, b.at(l, j), b.down(), b.right()); });
        share(team, tasks, [&](int64_t task) {
          const int64_t first = task * rows, count = std::min(rows, m - first);
          block.multiply(count, rows_of_a(first, count, l, inner, a_memory), c + first * c_stride + j, c_stride,
                         l == 0 ? into : Into::accumulate, bias == nullptr ? nullptr : bias + j);
        });
      }
    }
  }

  /// `count` rows of A, columns [l, l + inner): where they lie, or for a transposed A a copy in `memory`.
  typename PackedBlock<T>::Rows rows_of_a(int64_t first, int64_t count, int64_t l, int64_t inner, T* memory) const {
    if (!a.transposed) return {a.at(first, l), a.ld};
    for (int64_t i = 0; i < inner; ++i) std::copy_n(a.at(first, l + i), count, memory + i * copy_stride);
    return {memory, 1, copy_stride};
  }
};

}  // namespace

template <class T>
void blocked_product(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b, const T* bias, T* c,
                     int64_t c_stride, Into into) {
  thread_local TeamMemory memory_for_b, memory_for_a;
  TeamMemory &of_b = memory_for_b, &of_a = memory_for_a;  // which the other threads use, too
  const int threads = is_large_product(m, n, k) ? thread_count() : 1;
  of_b.reserve(1, static_cast<size_t>(PackedBlock<T>::memory_size(depth, block_columns)) * sizeof(T));
  of_a.reserve(threads, static_cast<size_t>(copy_stride * depth) * sizeof(T));
  const Call<T> call{m, n, k, a, b, bias, c, c_stride, into};
  const auto work = [&](int number, int team) {
    call.run(team, reinterpret_cast<T*>(of_b.of_share(0)), reinterpret_cast<T*>(of_a.of_share(number)));
  };
  if (threads == 1) return work(0, 1);
  parallel_team(threads, work);
}

template void blocked_product(int64_t, int64_t, int64_t, const Factor<float>&, const Factor<float>&, const float*,
                              float*, int64_t, Into);
template void blocked_product(int64_t, int64_t, int64_t, const Factor<double>&, const Factor<double>&, const double*,
                              double*, int64_t, Into);

}  // namespace carousel::kernels
