#pragma once

#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/recurrence.h>

#include <algorithm>

/// How the kernels of the recurrent layers divide their work: each thread takes rows of its own through all steps.
namespace carousel::kernels {

/// Rows [begin, end) of the batch, which one thread takes through all steps. Where no width is given, it is `hidden`.
class RowShare {
 public:
  RowShare(const Recurrence& sequence, int64_t begin, int64_t end) : s_(sequence), begin_(begin), end_(end) {}

 protected:
  template <class P>
  P* row(P* sequence, int64_t t, int64_t b, int64_t width) const {
    return sequence + (t * s_.batch + b) * width;
  }
  template <class P>
  P* row(P* sequence, int64_t t, int64_t b) const {
    return row(sequence, t, b, s_.hidden);
  }
  /// All of these rows at step t.
  template <class P>
  P* step(P* sequence, int64_t t) const {
    return row(sequence, t, begin_);
  }
  template <class P>
  P* step(P* sequence, int64_t t, int64_t width) const {
    return row(sequence, t, begin_, width);
  }
  int64_t count() const { return end_ - begin_; }

  /// The states before step t, `start` [B, H] and then those of `states` [T, B, H]; where a row is cleared, a copy in
  /// `scratch` [B, H] with that row zero.
  template <class T>
  const T* before(int64_t t, const T* start, const T* states, T* scratch) const {
    const T* const state = t == 0 ? step(start, 0) : step(states, t - 1);
    bool copied = false;
    for (int64_t b = begin_; b < end_; ++b) {
      if (!s_.cleared(t, b)) continue;
      if (!copied) std::copy_n(state, count() * s_.hidden, step(scratch, 0));
      copied = true;
      std::fill_n(row(scratch, 0, b), s_.hidden, T{0});
    }
    return copied ? step(scratch, 0) : state;
  }

  /// The same for row b alone, where `zeros` [H] stands for a state that is cleared.
  template <class T>
  const T* before(int64_t t, int64_t b, const T* start, const T* states, const T* zeros) const {
    if (s_.cleared(t, b)) return zeros;
    return t == 0 ? row(start, 0, b) : row(states, t - 1, b);
  }

  /// The state that each row ended with.
  template <class T>
  void write_last(const T* start, const T* states, T* last) const {
    for (int64_t b = begin_; b < end_; ++b) {
      int64_t t = s_.steps - 1;
      while (t >= 0 && s_.ended(t, b)) --t;
      std::copy_n(t < 0 ? row(start, 0, b) : row(states, t, b), s_.hidden, row(last, 0, b));
    }
  }

  /// Where the gradient of row b's state begins on its way back: `last` [B, H], or zeros for null.
  template <class T>
  void start_row(int64_t b, const T* last, T* gradient) const {
    if (last != nullptr) {
      std::copy_n(row(last, 0, b), s_.hidden, row(gradient, 0, b));
    } else {
      std::fill_n(row(gradient, 0, b), s_.hidden, T{0});
    }
  }
  template <class T>
  void start_rows(const T* last, T* gradient) const {
    for (int64_t b = begin_; b < end_; ++b) start_row(b, last, gradient);
  }

  /// Adds what arrives at the outputs of step t (null: nothing) to the gradients of the rows that have not ended.
  template <class T>
  void add_outputs(int64_t t, const T* dy, T* gradient) const {
    for (int64_t b = begin_; b < end_ && dy != nullptr; ++b) {
      if (s_.ended(t, b)) continue;
      const T* const from = row(dy, t, b);
      T* const to = row(gradient, 0, b);
      for (int64_t i = 0; i < s_.hidden; ++i) to[i] += from[i];
    }
  }

  /// Notes the gradient of the states after step t in `all` [T, B, H], unless that is null: nothing for ended rows.
  template <class T>
  void note(int64_t t, const T* gradient, T* all) const {
    if (all == nullptr) return;
    std::copy_n(step(gradient, 0), count() * s_.hidden, step(all, t));
    clear_ended(t, all, s_.hidden);
  }

  /// Zeros at step t for the rows that have ended.
  template <class T>
  void clear_ended(int64_t t, T* sequence, int64_t width) const {
    for (int64_t b = begin_; b < end_; ++b) {
      if (s_.ended(t, b)) std::fill_n(row(sequence, t, b, width), width, T{0});
    }
  }

  /// What the product with the weights has made of the states' gradients is right but for rows that have ended, where
  /// the gradient stays `last`, and for those that were cleared, where it ends.
  template <class T>
  void mend(int64_t t, const T* last, T* gradient) const {
    for (int64_t b = begin_; b < end_; ++b) {
      if (s_.ended(t, b)) start_row(b, last, gradient);
      if (s_.cleared(t, b)) std::fill_n(row(gradient, 0, b), s_.hidden, T{0});
    }
  }

  const Recurrence& s_;
  const int64_t begin_, end_;
};

/// Calls `body(begin, end)` for each thread's share of the rows; `width` is how many products with a state each step
/// makes. No thread ever waits for another. One needs two rows at least, to use a loaded weight more than once; where
/// there is little work, all rows run on the calling thread, without OpenMP.
template <class Body>
void share_rows(const Recurrence& s, int64_t width, const Body& body) {
  constexpr int64_t products_per_nanosecond = 16;
  const int64_t work = s.steps * s.batch * s.hidden * width / products_per_nanosecond;
  const int64_t shares = std::clamp<int64_t>(s.batch / 2, 1, threads_for(work));
  if (shares == 1) return body(int64_t{0}, s.batch);
  parallel_tasks(shares, [&](int64_t i) { body(s.batch * i / shares, s.batch * (i + 1) / shares); });
}

}  // namespace carousel::kernels
