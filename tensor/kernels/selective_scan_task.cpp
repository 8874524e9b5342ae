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
      const Coefficients b = coefficients(task_.b, task_.in.b, t, 0), c = coefficients(task_.c, task_.in.c, t, 0);
      const T* a = task_.a + offset_;
      T* state = scratch_.state + offset_;
      const auto past = seen(t);
      V sum = hn::Mul(skip_, u);
      for (int64_t n = 0; n < n_; ++n, a += scan_channels, state += scan_channels) {
        const V before = hn::IfThenElseZero(past, hn::Load(D(), state));
        const V h = hn::MulAdd(exp(D(), hn::Mul(dt, hn::Load(D(), a))), before, hn::Mul(input, b[n]));
        hn::Store(h, D(), state);
        sum = hn::MulAdd(c[n], h, sum);
      }
      store(sum, out);
    }
  }

  /// Steps [begin, end), none of which lies behind the row's end, and `Group` states from n on: as many as registers
  /// hold with their gradients. What the states of a step add to its u and dt is summed from group to group.
  template <int Group, bool shown>
  HWY_INLINE void backward(int64_t begin, int64_t end, int64_t n, const T* kept, const T* dy,
                           const ScanGradients<T>& out, const ScanSums<T>& sums) const {
    make_states<Group>(begin, end, n, kept);
    V gradient[Group], sum_a[Group];
#pragma GCC unroll 4
    for (int g = 0; g < Group; ++g) {
      gradient[g] = hn::Load(D(), scratch_.state + table(n + g));
      sum_a[g] = hn::Load(D(), sums.a + table(n + g));
    }
    for (int64_t t = end - 1; t >= begin; --t) {
      step_backward<Group, shown>(t, t - begin, n, dy, out, sums, gradient, sum_a);
    }
#pragma GCC unroll 4
    for (int g = 0; g < Group; ++g) {
      hn::Store(gradient[g], D(), scratch_.state + table(n + g));
      hn::Store(sum_a[g], D(), sums.a + table(n + g));
    }
  }

 private:
  // Stores of vectors may change anything that is reached by a pointer, as far as a compiler knows: what the inner
  // loops read is in local variables, or it would be read anew after each.

  /// The states before and after each step of a block, and the decays between.
  template <int Group>
  HWY_INLINE void make_states(int64_t begin, int64_t end, int64_t n, const T* kept) const {
    const T* const start = kept + task_.at(begin / scan_block, n_ * task_.shape.channels) + task_.first + offset_;
    T* states = scratch_.states;
    T* decays = scratch_.decays;
    V state[Group], a[Group];
#pragma GCC unroll 4
    for (int g = 0; g < Group; ++g) {
      a[g] = hn::Load(D(), task_.a + table(n + g));
      state[g] = load(start + (n + g) * task_.shape.channels);
      hn::Store(state[g], D(), states + g * lanes);
    }
    for (int64_t t = begin; t < end; ++t) {
      const V u = load(task_.in.u + of_step(t)), dt = load(task_.in.dt + of_step(t)), input = hn::Mul(dt, u);
      const Coefficients b = coefficients(task_.b, task_.in.b, t, n);
      const auto past = seen(t);
      states += ScanScratch<T>::step;
#pragma GCC unroll 4
      for (int g = 0; g < Group; ++g) {
        const V factor = exp(D(), hn::Mul(dt, a[g]));
        state[g] = hn::MulAdd(factor, hn::IfThenElseZero(past, state[g]), hn::Mul(input, b[g]));
        hn::Store(factor, D(), decays + g * lanes);
        hn::Store(state[g], D(), states + g * lanes);
      }
      decays += ScanScratch<T>::step;
    }
  }

  template <int Group, bool shown>
  HWY_INLINE void step_backward(int64_t t, int64_t k, int64_t n, const T* dys, const ScanGradients<T>& out,
                                const ScanSums<T>& sums, V (&gradient)[Group], V (&sum_a)[Group]) const {
    const V u = load(task_.in.u + of_step(t)), dt = load(task_.in.dt + of_step(t)), input = hn::Mul(dt, u);
    const V dy = dys != nullptr ? load(dys + of_step(t)) : hn::Zero(D());
    const auto there = hn::FirstN(D(), static_cast<size_t>(count_));  // the other lanes may hold 0 * NaN
    const auto past = seen(t);
    const Coefficients b = coefficients(task_.b, task_.in.b, t, n), c = coefficients(task_.c, task_.in.c, t, n);
    const T* const a = task_.a + table(n);
    const T* const states = scratch_.states + k * ScanScratch<T>::step;
    const T* const decays = scratch_.decays + k * ScanScratch<T>::step;
    T* const sums_b = fixed ? sums.b + table(n) : scratch_.sums_b + k * ScanScratch<T>::step;
    T* const sums_c = fixed ? sums.c + table(n) : scratch_.sums_c + k * ScanScratch<T>::step;
    constexpr int64_t sums_step = fixed ? scan_channels : lanes;
    T* const of_b = scratch_.of_b + k * scan_channels + offset_;  // sum over n of b dh
    T* const of_a = scratch_.of_a + k * scan_channels + offset_;  // sum over n of A dh decay h
    V sum_b = n == 0 ? hn::Zero(D()) : hn::Load(D(), of_b), weighted = n == 0 ? hn::Zero(D()) : hn::Load(D(), of_a);
#pragma GCC unroll 4
    for (int g = 0; g < Group; ++g) {
      const V before = hn::IfThenElseZero(past, hn::Load(D(), states + g * lanes));
      const V after = hn::Load(D(), states + ScanScratch<T>::step + g * lanes);
      const V dh = hn::MulAdd(c[g], dy, gradient[g]);
      if constexpr (shown) show(dh, out.dh + task_.at(t, task_.shape.channels * n_) + n + g);
      add(hn::IfThenElseZero(there, hn::Mul(dh, input)), sums_b + g * sums_step);
      add(hn::IfThenElseZero(there, hn::Mul(dy, after)), sums_c + g * sums_step);
      sum_b = hn::MulAdd(b[g], dh, sum_b);
      const V carried = hn::Mul(dh, hn::Load(D(), decays + g * lanes)), q = hn::Mul(carried, before);
      weighted = hn::MulAdd(hn::Load(D(), a + g * scan_channels), q, weighted);
      sum_a[g] = hn::MulAdd(dt, q, sum_a[g]);
      gradient[g] = hn::IfThenElseZero(past, carried);
    }
    if (n + Group < n_) {
      hn::Store(sum_b, D(), of_b);
      hn::Store(weighted, D(), of_a);
      return;
    }
    store(hn::MulAdd(skip_, dy, hn::Mul(dt, sum_b)), out.u + of_step(t));
    store(hn::MulAdd(u, sum_b, weighted), out.dt + of_step(t));
    add(hn::Mul(dy, u), sums.d + offset_);
  }

  /// B or C at one step: of states n, n + 1, .. one number for all channels, or with `fixed` one for each.
  struct Coefficients {
    const T* from;
    HWY_INLINE V operator[](int64_t n) const {
      if constexpr (fixed) return hn::Load(D(), from + n * scan_channels);
      return hn::Set(D(), from[n]);
    }
  };
  HWY_INLINE Coefficients coefficients(const T* of_channels, const T* of_steps, int64_t t, int64_t n) const {
    return {fixed ? of_channels + table(n) : of_steps + task_.at(t, n_) + n};
  }

  /// Whether step t sees the state before it: a mask, as a branch would split the loop in two.
  HWY_INLINE hn::Mask<D> seen(int64_t t) const { return hn::FirstN(D(), task_.cleared(t) ? 0 : hn::Lanes(D())); }

  HWY_INLINE int64_t of_step(int64_t t) const { return task_.at(t, task_.shape.channels) + task_.first + offset_; }
  HWY_INLINE int64_t table(int64_t n) const { return n * scan_channels + offset_; }

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

/// The sums of some steps' dB or dC over the task's channels, [steps, Group, lanes], to [T, B, N].
template <int Group, class T>
void store_sums(const ScanTask<T>& task, int64_t begin, int64_t end, int64_t n, const T* sums, T* to) {
  const hn::ScalableTag<T> d;
  for (int64_t t = begin; t < end; ++t) {
    for (int g = 0; g < Group; ++g) {
      const auto sum = hn::Load(d, sums + ((t - begin) * scan_group + g) * scan_lanes<T>);
      to[task.at(t, task.shape.states) + n + g] = hn::GetLane(hn::SumOfLanes(d, sum));
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

/// Steps [begin, end) and `Group` states from n on, for all channels of the task.
template <int Group, class T, bool fixed>
void backward_group(const ScanTask<T>& task, int64_t begin, int64_t end, int64_t n, const T* kept, const T* dy,
                    const ScanGradients<T>& out, const ScanSums<T>& sums, const ScanScratch<T>& scratch) {
  const auto width = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (!fixed) {
    std::fill_n(scratch.sums_b, ScanScratch<T>::block, T{0});
    std::fill_n(scratch.sums_c, ScanScratch<T>::block, T{0});
  }
  for (int64_t i = 0; i < task.count; i += width) {
    const Strip<T, fixed> strip(task, scratch, i);
    if (out.dh == nullptr) {
      strip.template backward<Group, false>(begin, end, n, kept, dy, out, sums);
    } else {
      strip.template backward<Group, true>(begin, end, n, kept, dy, out, sums);
    }
  }
  if (!fixed) {
    store_sums<Group>(task, begin, end, n, scratch.sums_b, sums.b);
    store_sums<Group>(task, begin, end, n, scratch.sums_c, sums.c);
  }
}

template <class T, bool fixed>
void backward(const ScanTask<T>& task, const T* kept, const T* dy, const T* dh_last, const ScanGradients<T>& out,
              const ScanSums<T>& sums, const ScanScratch<T>& scratch) {
  const int64_t live = task.live_steps(), states = task.shape.states;
  clear_ended<T, fixed>(task, out, sums);
  load_state(task, dh_last, scratch.state);
  for (int64_t begin = (live - 1) / scan_block * scan_block; live > 0 && begin >= 0; begin -= scan_block) {
    const int64_t end = std::min(begin + scan_block, live);
    int64_t n = 0;
    for (; n + scan_group <= states; n += scan_group) {
      backward_group<scan_group, T, fixed>(task, begin, end, n, kept, dy, out, sums, scratch);
    }
    for (; n < states; ++n) backward_group<1, T, fixed>(task, begin, end, n, kept, dy, out, sums, scratch);
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
