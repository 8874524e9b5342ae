#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/selective_scan_task.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/selective_scan_task.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

/// As many of a task's channels as one vector holds, or what is left of them.
template <class T, bool fixed>
class Strip {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t lanes = scan_lanes<T>;  // between vectors of scratch memory

 public:
  Strip(const ScanTask<T>& task, const ScanScratch<T>& scratch, int64_t offset)
      : task_(task),
        scratch_(scratch),
        n_(task.shape.states),
        offset_(offset),
        count_(std::min(static_cast<int64_t>(hn::Lanes(D())), task.count - offset)),
        skip_(load(task.in.d + task.first + offset)) {}

  HWY_INLINE void forward(T* y, T* kept) const {
    const int64_t live = task_.live_steps();
    for (int64_t t = 0; t < task_.shape.steps; ++t) {
      if (kept != nullptr && t % scan_block == 0) keep_state(kept, t / scan_block);
      T* const out = y + of_step(t);
      if (t >= live) {
        store(hn::Zero(D()), out);
        continue;
      }
      const V u = load(task_.in.u + of_step(t)), dt = load(task_.in.dt + of_step(t)), input = hn::Mul(dt, u);
      const bool cleared = task_.cleared(t);
      V sum = hn::Mul(skip_, u);
      for (int64_t n = 0; n < n_; ++n) {
        T* const state = scratch_.state + table(n);
        const V before = cleared ? hn::Zero(D()) : hn::Load(D(), state);
        const V h = hn::MulAdd(decay(dt, n), before, hn::Mul(input, b(t, n)));
        hn::Store(h, D(), state);
        sum = hn::MulAdd(c(t, n), h, sum);
      }
      store(sum, out);
    }
  }

  /// Steps [begin, end), none of which lies behind the row's end.
  HWY_INLINE void backward(int64_t begin, int64_t end, const T* kept, const T* dy, const ScanGradients<T>& out,
                           const ScanSums<T>& sums) const {
    make_states(begin, end, kept);
    for (int64_t t = end - 1; t >= begin; --t) step_backward(t, t - begin, dy, out, sums);
  }

 private:
  /// The states before and after each step of a block, and the decays between.
  HWY_INLINE void make_states(int64_t begin, int64_t end, const T* kept) const {
    const T* const start = kept + task_.at(begin / scan_block, n_ * task_.shape.channels) + task_.first + offset_;
    for (int64_t n = 0; n < n_; ++n) {
      hn::Store(load(start + n * task_.shape.channels), D(), scratch_.states + n * lanes);
    }
    for (int64_t t = begin; t < end; ++t) {
      const int64_t k = t - begin;
      const V u = load(task_.in.u + of_step(t)), dt = load(task_.in.dt + of_step(t)), input = hn::Mul(dt, u);
      const T* const before = seen(t, k);
      for (int64_t n = 0; n < n_; ++n) {
        const V factor = decay(dt, n);
        hn::Store(factor, D(), scratch_.decays + slot(k, n));
        hn::Store(hn::MulAdd(factor, hn::Load(D(), before + n * lanes), hn::Mul(input, b(t, n))), D(),
                  scratch_.states + slot(k + 1, n));
      }
    }
  }

  HWY_INLINE void step_backward(int64_t t, int64_t k, const T* dys, const ScanGradients<T>& out,
                                const ScanSums<T>& sums) const {
    const V u = load(task_.in.u + of_step(t)), dt = load(task_.in.dt + of_step(t)), input = hn::Mul(dt, u);
    const V dy = dys != nullptr ? load(dys + of_step(t)) : hn::Zero(D());
    const auto there = hn::FirstN(D(), static_cast<size_t>(count_));  // the other lanes may hold 0 * NaN
    const T* const before = seen(t, k);
    const bool cleared = task_.cleared(t);
    V sum_b = hn::Zero(D()), sum_a = hn::Zero(D());
    for (int64_t n = 0; n < n_; ++n) {
      T* const gradient = scratch_.state + table(n);
      const V dh = hn::MulAdd(c(t, n), dy, hn::Load(D(), gradient));
      if (out.dh != nullptr) show(dh, out.dh + task_.at(t, task_.shape.channels * n_) + n);
      add(hn::IfThenElseZero(there, hn::Mul(dh, input)), fixed ? sums.b + table(n) : scratch_.sums_b + slot(k, n));
      add(hn::IfThenElseZero(there, hn::Mul(dy, hn::Load(D(), scratch_.states + slot(k + 1, n)))),
          fixed ? sums.c + table(n) : scratch_.sums_c + slot(k, n));
      sum_b = hn::MulAdd(b(t, n), dh, sum_b);
      const V carried = hn::Mul(dh, hn::Load(D(), scratch_.decays + slot(k, n)));
      const V q = hn::Mul(carried, hn::Load(D(), before + n * lanes));
      sum_a = hn::MulAdd(hn::Load(D(), task_.a + table(n)), q, sum_a);
      add(hn::Mul(dt, q), sums.a + table(n));
      hn::Store(cleared ? hn::Zero(D()) : carried, D(), gradient);
    }
    store(hn::MulAdd(skip_, dy, hn::Mul(dt, sum_b)), out.u + of_step(t));
    store(hn::MulAdd(u, sum_b, sum_a), out.dt + of_step(t));
    add(hn::Mul(dy, u), sums.d + offset_);
  }

  HWY_INLINE V decay(V dt, int64_t n) const { return exp(D(), hn::Mul(dt, hn::Load(D(), task_.a + table(n)))); }
  HWY_INLINE V b(int64_t t, int64_t n) const { return coefficient(task_.b, task_.in.b, t, n); }
  HWY_INLINE V c(int64_t t, int64_t n) const { return coefficient(task_.c, task_.in.c, t, n); }
  HWY_INLINE V coefficient(const T* of_channels, const T* of_steps, int64_t t, int64_t n) const {
    if constexpr (fixed) return hn::Load(D(), of_channels + table(n));
    return hn::Set(D(), of_steps[task_.at(t, n_) + n]);
  }

  /// The state before step t, the k-th of its block, as that step sees it.
  HWY_INLINE const T* seen(int64_t t, int64_t k) const {
    return task_.cleared(t) ? scratch_.zeros : scratch_.states + slot(k, 0);
  }

  HWY_INLINE int64_t of_step(int64_t t) const { return task_.at(t, task_.shape.channels) + task_.first + offset_; }
  HWY_INLINE int64_t table(int64_t n) const { return n * scan_channels + offset_; }
  HWY_INLINE int64_t slot(int64_t k, int64_t n) const { return (k * n_ + n) * lanes; }

  HWY_INLINE void keep_state(T* kept, int64_t block) const {
    T* const to = kept + task_.at(block, n_ * task_.shape.channels) + task_.first + offset_;
    for (int64_t n = 0; n < n_; ++n) store(hn::Load(D(), scratch_.state + table(n)), to + n * task_.shape.channels);
  }

  /// To every N-th number: [I, N] is the order of states outside.
  HWY_INLINE void show(V value, T* to) const {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    hn::Store(value, D(), buffer);
    for (int64_t i = 0; i < count_; ++i) to[(task_.first + offset_ + i) * n_] = buffer[i];
  }

  HWY_INLINE void add(V value, T* sum) const { hn::Store(hn::Add(hn::Load(D(), sum), value), D(), sum); }

  HWY_INLINE V load(const T* from) const {
    if (count_ == static_cast<int64_t>(hn::Lanes(D()))) return hn::LoadU(D(), from);
    return load_first(D(), from, static_cast<size_t>(count_));
  }
  HWY_INLINE void store(V value, T* to) const {
    if (count_ == static_cast<int64_t>(hn::Lanes(D()))) {
      hn::StoreU(value, D(), to);
    } else {
      store_first(value, D(), to, static_cast<size_t>(count_));
    }
  }

  const ScanTask<T>& task_;
  const ScanScratch<T>& scratch_;
  const int64_t n_, offset_, count_;
  const V skip_;
};

/// States of a row, [I, N], to the task's table [N, 64] and back.
template <class T>
void load_state(const ScanTask<T>& task, const T* states, T* table) {
  const int64_t n = task.shape.states;
  for (int64_t i = 0; i < task.count; ++i) {
    const int64_t from = (task.row * task.shape.channels + task.first + i) * n;
    for (int64_t j = 0; j < n; ++j) table[j * scan_channels + i] = states != nullptr ? states[from + j] : 0;
  }
}
template <class T>
void store_state(const ScanTask<T>& task, const T* table, T* states) {
  const int64_t n = task.shape.states;
  for (int64_t i = 0; i < task.count; ++i) {
    const int64_t to = (task.row * task.shape.channels + task.first + i) * n;
    for (int64_t j = 0; j < n; ++j) states[to + j] = table[j * scan_channels + i];
  }
}

template <class T, bool fixed>
void forward(const ScanTask<T>& task, const T* h0, T* y, T* h_last, T* kept, const ScanScratch<T>& scratch) {
  const auto width = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  load_state(task, h0, scratch.state);
  for (int64_t i = 0; i < task.count; i += width) Strip<T, fixed>(task, scratch, i).forward(y, kept);
  store_state(task, scratch.state, h_last);
}

/// The sums of some steps' dB or dC over the task's channels, [steps, N, lanes], to [T, B, N].
template <class T>
void store_sums(const ScanTask<T>& task, int64_t begin, int64_t end, const T* sums, T* to) {
  const hn::ScalableTag<T> d;
  const int64_t n = task.shape.states;
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t j = 0; j < n; ++j) {
      const auto sum = hn::Load(d, sums + ((t - begin) * n + j) * scan_lanes<T>);
      to[task.at(t, n) + j] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

/// Zeros for the gradients of steps behind the row's end.
template <class T, bool fixed>
void clear_ended(const ScanTask<T>& task, const ScanGradients<T>& out, const ScanSums<T>& sums) {
  const int64_t n = task.shape.states, channels = task.shape.channels;
  for (int64_t t = task.live_steps(); t < task.shape.steps; ++t) {
    std::fill_n(out.u + task.at(t, channels) + task.first, task.count, T{0});
    std::fill_n(out.dt + task.at(t, channels) + task.first, task.count, T{0});
    if (out.dh != nullptr) std::fill_n(out.dh + (task.at(t, channels) + task.first) * n, task.count * n, T{0});
    if (fixed) continue;
    std::fill_n(sums.b + task.at(t, n), n, T{0});
    std::fill_n(sums.c + task.at(t, n), n, T{0});
  }
}

template <class T, bool fixed>
void backward(const ScanTask<T>& task, const T* kept, const T* dy, const T* dh_last, const ScanGradients<T>& out,
              const ScanSums<T>& sums, const ScanScratch<T>& scratch) {
  const auto width = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t live = task.live_steps(), block_size = scan_block * task.shape.states * scan_lanes<T>;
  clear_ended<T, fixed>(task, out, sums);
  load_state(task, dh_last, scratch.state);
  for (int64_t begin = (live - 1) / scan_block * scan_block; live > 0 && begin >= 0; begin -= scan_block) {
    const int64_t end = std::min(begin + scan_block, live);
    if (!fixed) {
      std::fill_n(scratch.sums_b, block_size, T{0});
      std::fill_n(scratch.sums_c, block_size, T{0});
    }
    for (int64_t i = 0; i < task.count; i += width) {
      Strip<T, fixed>(task, scratch, i).backward(begin, end, kept, dy, out, sums);
    }
    if (!fixed) {
      store_sums(task, begin, end, scratch.sums_b, sums.b);
      store_sums(task, begin, end, scratch.sums_c, sums.c);
    }
  }
  store_state(task, scratch.state, out.h0);
}

#define CAROUSEL_SCAN(type)                                                                                            \
  void forward_##type(const ScanTask<type>& task, const type* h0, type* y, type* h_last, type* kept,                   \
                      const ScanScratch<type>& scratch) {                                                              \
    (task.shape.fixed ? forward<type, true> : forward<type, false>)(task, h0, y, h_last, kept, scratch);               \
  }                                                                                                                    \
  void backward_##type(const ScanTask<type>& task, const type* kept, const type* dy, const type* dh_last,              \
                       const ScanGradients<type>& out, const ScanSums<type>& sums, const ScanScratch<type>& scratch) { \
    (task.shape.fixed ? backward<type, true> : backward<type, false>)(task, kept, dy, dh_last, out, sums, scratch);    \
  }
CAROUSEL_SCAN(float)
CAROUSEL_SCAN(double)
#undef CAROUSEL_SCAN

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

#define CAROUSEL_SCAN(type)                                                                                          \
  HWY_EXPORT(forward_##type);                                                                                        \
  HWY_EXPORT(backward_##type);                                                                                       \
  void scan_forward(const ScanTask<type>& task, const type* h0, type* y, type* h_last, type* kept,                   \
                    const ScanScratch<type>& scratch) {                                                              \
    HWY_DYNAMIC_DISPATCH(forward_##type)(task, h0, y, h_last, kept, scratch);                                        \
  }                                                                                                                  \
  void scan_backward(const ScanTask<type>& task, const type* kept, const type* dy, const type* dh_last,              \
                     const ScanGradients<type>& out, const ScanSums<type>& sums, const ScanScratch<type>& scratch) { \
    HWY_DYNAMIC_DISPATCH(backward_##type)(task, kept, dy, dh_last, out, sums, scratch);                              \
  }
CAROUSEL_SCAN(float)
CAROUSEL_SCAN(double)
#undef CAROUSEL_SCAN

}  // namespace carousel::kernels
#endif  // HWY_ONCE
