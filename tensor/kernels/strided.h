#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The one loop behind every operation that works element by element: N operands of one shape, each with strides of
/// its own (0 where it broadcasts), walked as few long runs.
namespace carousel::kernels {

/// A stretch of elements along one axis: where each operand starts, and its step in bytes.
template <size_t N>
struct Run {
  std::array<char*, N> at{};
  std::array<int64_t, N> step{};
  int64_t count = 0;
};

template <size_t N>
using RunBody = void (*)(const Run<N>&);

/// The axes of the loop, outermost first; the last one makes the runs.
template <size_t N>
struct Nest {
  static constexpr int max_rank = 8;

  int rank = 0;
  int64_t count = 1;  // elements in all
  std::array<int64_t, max_rank> sizes;
  std::array<std::array<int64_t, N>, max_rank> steps;

  /// Appends an axis inside the others; one that continues its neighbour in every operand is merged into it.
  void add_axis(int64_t size, const std::array<int64_t, N>& step) {
    count *= size;
    if (size == 1) return;
    if (rank > 0 && size != 0 && continues(size, step)) {
      sizes[rank - 1] *= size;
      steps[rank - 1] = step;
    } else {
      sizes[rank] = size;
      steps[rank] = step;
      ++rank;
    }
  }

 private:
  bool continues(int64_t size, const std::array<int64_t, N>& step) const {
    for (size_t k = 0; k < N; ++k) {
      if (steps[rank - 1][k] != step[k] * size) return false;
    }
    return true;
  }
};

/// Calls `body` for runs that cover the nest once, in any order, from several threads when there are many elements.
/// Elements are cut into fixed chunks, so that which ones share a run does not depend on the thread count. Where an
/// operand is turned (its neighbours lie closer along the next axis than along the inner one), runs are short and go
/// tile by tile, so that a cache line is read once.
template <size_t N>
void for_each_run(const Nest<N>& nest, const std::array<char*, N>& at, RunBody<N> body);

/// Whether `body` returns true for some run; once one has, the runs that have not begun are left out. Parallel like
/// for_each_run.
bool any_run(const Nest<1>& nest, char* at, bool (*body)(const Run<1>&));

}  // namespace carousel::kernels
