#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/strided.h>

#include <algorithm>

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

}  // namespace

template <size_t N>
void for_each_run(const Nest<N>& nest, const std::array<char*, N>& at, RunBody<N> body) {
  parallel_ranges(nest.count, elementwise_grain, [&](int64_t begin, int64_t end) { walk(nest, at, body, begin, end); });
}

bool any_run(const Nest<1>& nest, char* at, bool (*body)(const Run<1>&)) {
  Walker<1> walker(nest, {at}, 0);
  for (int64_t done = 0; done < nest.count;) {
    const Run<1>& run = walker.next(std::min(elementwise_grain, nest.count - done));
    if (body(run)) return true;
    done += run.count;
  }
  return false;
}

template void for_each_run<2>(const Nest<2>&, const std::array<char*, 2>&, RunBody<2>);
template void for_each_run<3>(const Nest<3>&, const std::array<char*, 3>&, RunBody<3>);
template void for_each_run<4>(const Nest<4>&, const std::array<char*, 4>&, RunBody<4>);

}  // namespace carousel::kernels
