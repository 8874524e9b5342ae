#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/strided.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace carousel::kernels {
namespace {

/// A position in a nest that moves forward run by run.
template <size_t N>
class Walker {
 public:
  Walker(const Nest<N>& nest, const std::array<char*, N>& at, int64_t position) : nest_(nest), outer_(at) {
    if (nest.rank == 0 || nest.count == 0) return;  // one element, or none
    inner_size_ = nest.sizes[nest.rank - 1];
    run_.step = nest.steps[nest.rank - 1];
    inner_ = position % inner_size_;
    position /= inner_size_;
    for (int axis = nest.rank - 2; axis >= 0; --axis) {
      index_[axis] = position % nest.sizes[axis];
      move(axis, index_[axis]);
      position /= nest.sizes[axis];
    }
  }

  /// The run from here to the end of the inner axis, at most `limit` elements; moves past it.
  const Run<N>& next(int64_t limit) {
    run_.count = std::min(limit, inner_size_ - inner_);
    for (size_t k = 0; k < N; ++k) run_.at[k] = outer_[k] + inner_ * run_.step[k];
    inner_ += run_.count;
    if (inner_ == inner_size_) {
      inner_ = 0;
      carry();
    }
    return run_;
  }

 private:
  void move(int axis, int64_t by) {
    for (size_t k = 0; k < N; ++k) outer_[k] += by * nest_.steps[axis][k];
  }

  void carry() {
    for (int axis = nest_.rank - 2; axis >= 0; --axis) {
      move(axis, 1);
      if (++index_[axis] < nest_.sizes[axis]) return;
      move(axis, -nest_.sizes[axis]);
      index_[axis] = 0;
    }
  }

  const Nest<N>& nest_;
  std::array<char*, N> outer_;
  std::array<int64_t, Nest<N>::max_rank> index_{};
  int64_t inner_ = 0;
  int64_t inner_size_ = 1;
  Run<N> run_;
};

template <size_t N>
void walk(const Nest<N>& nest, const std::array<char*, N>& at, RunBody<N> body, int64_t begin, int64_t end) {
  Walker<N> walker(nest, at, begin);
  while (begin < end) {
    const Run<N>& run = walker.next(end - begin);
    body(run);
    begin += run.count;
  }
}

constexpr int64_t cache_line = 64;
constexpr int64_t tile = 16;  // rows and columns; more columns of a size 2^k would fall on the same lines of the cache

template <size_t N>
bool is_turned(const Nest<N>& nest) {
  if (nest.rank < 2 || nest.count < elementwise_grain) return false;
  for (size_t k = 0; k < N; ++k) {
    const int64_t inner = std::abs(nest.steps[nest.rank - 1][k]), next = std::abs(nest.steps[nest.rank - 2][k]);
    if (inner >= cache_line && 0 < next && next < cache_line) return true;
  }
  return false;
}

/// Calls `body` for the runs of one tile of the last two axes, whose first element is `at`.
template <size_t N>
void walk_tile(const Nest<N>& nest, std::array<char*, N> at, RunBody<N> body, int64_t row, int64_t column) {
  const auto &row_step = nest.steps[nest.rank - 2], &step = nest.steps[nest.rank - 1];
  const int64_t rows = std::min(tile, nest.sizes[nest.rank - 2] - row);
  for (size_t k = 0; k < N; ++k) at[k] += row * row_step[k] + column * step[k];
  Run<N> run{.at = at, .step = step, .count = std::min(tile, nest.sizes[nest.rank - 1] - column)};
  for (int64_t i = 0; i < rows; ++i) {
    body(run);
    for (size_t k = 0; k < N; ++k) run.at[k] += row_step[k];
  }
}

template <size_t N>
void for_each_tile(const Nest<N>& nest, const std::array<char*, N>& at, RunBody<N> body) {
  const int64_t down = (nest.sizes[nest.rank - 2] + tile - 1) / tile;
  const int64_t across = (nest.sizes[nest.rank - 1] + tile - 1) / tile;
  const int64_t matrices = nest.count / (nest.sizes[nest.rank - 2] * nest.sizes[nest.rank - 1]);
  parallel_ranges(matrices * down * across, elementwise_grain / (tile * tile), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::array<char*, N> matrix = at;
      int64_t rest = i / (down * across);
      for (int axis = nest.rank - 3; axis >= 0; rest /= nest.sizes[axis--]) {
        for (size_t k = 0; k < N; ++k) matrix[k] += rest % nest.sizes[axis] * nest.steps[axis][k];
      }
      walk_tile(nest, matrix, body, i / across % down * tile, i % across * tile);
    }
  });
}

}  // namespace

template <size_t N>
void for_each_run(const Nest<N>& nest, const std::array<char*, N>& at, RunBody<N> body) {
  if (is_turned(nest)) return for_each_tile(nest, at, body);
  parallel_ranges(nest.count, elementwise_grain, [&](int64_t begin, int64_t end) { walk(nest, at, body, begin, end); });
}

bool any_run(const Nest<1>& nest, char* at, bool (*body)(const Run<1>&)) {
  std::atomic<bool> found{false};
  parallel_ranges(nest.count, elementwise_grain, [&](int64_t begin, int64_t end) {
    if (found.load(std::memory_order_relaxed)) return;
    Walker<1> walker(nest, {at}, begin);
    while (begin < end) {
      const Run<1>& run = walker.next(end - begin);
      if (body(run)) return found.store(true, std::memory_order_relaxed);
      begin += run.count;
    }
  });
  return found;
}

template void for_each_run<2>(const Nest<2>&, const std::array<char*, 2>&, RunBody<2>);
template void for_each_run<3>(const Nest<3>&, const std::array<char*, 3>&, RunBody<3>);
template void for_each_run<4>(const Nest<4>&, const std::array<char*, 4>&, RunBody<4>);
template void for_each_run<5>(const Nest<5>&, const std::array<char*, 5>&, RunBody<5>);

}  // namespace carousel::kernels
