#include <carousel/tensor/kernels/elman.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace carousel::kernels {
namespace {

bool ended(const ElmanSequence& s, int64_t t, int64_t row) {
  return s.lengths != nullptr && s.first_step + t >= s.lengths[row];
}

/// Whether the row's state is cut off before step t; what comes after a row's end changes nothing.
bool cleared(const ElmanSequence& s, int64_t t, int64_t row) {
  return s.reset != nullptr && s.reset[t * s.batch + row] && !ended(s, t, row);
}

void activate(Nonlinearity f, int64_t n, auto* h) {
  if (f == Nonlinearity::tanh) return tanh(n, h, h);
  for (int64_t i = 0; i < n; ++i) h[i] = h[i] < 0 ? 0 : h[i];  // NaN stays
}

template <class T>
void activate_backward(Nonlinearity f, int64_t n, const T* h, const T* dh, T* dz) {
  if (f == Nonlinearity::tanh) return tanh_backward(n, h, dh, dz);
  for (int64_t i = 0; i < n; ++i) dz[i] = h[i] > 0 ? dh[i] : 0;
}

template <class T>
void add(int64_t n, const T* x, T* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

/// The time loop over some of the rows: what one thread does.
template <class T>
class Rows {
 public:
  Rows(const ElmanSequence& sequence, const PackedMatrix<T>& weight, int64_t begin, int64_t end)
      : s_(sequence), weight_(weight), begin_(begin), end_(end), size_((end - begin) * sequence.hidden) {}

  /// `scratch` [B, H] is for states with cleared rows; null when no row is ever cleared.
  void forward(const T* h0, T* h, T* h_last, T* scratch) const {
    for (int64_t t = 0; t < s_.steps; ++t) {
      const T* before = without_cleared(t, t == 0 ? step(h0, 0) : step(h, t - 1), scratch);
      T* now = step(h, t);
      weight_.multiply(end_ - begin_, before, s_.hidden, now, s_.hidden, Into::accumulate);
      activate(s_.nonlinearity, size_, now);
      for (int64_t b = begin_; b < end_; ++b) {
        if (ended(s_, t, b)) std::fill_n(row(h, t, b), s_.hidden, T{0});
      }
    }
    for (int64_t b = begin_; b < end_; ++b) {
      int64_t last = s_.steps - 1;
      while (last >= 0 && ended(s_, last, b)) --last;
      std::copy_n(last < 0 ? row(h0, 0, b) : row(h, last, b), s_.hidden, row(h_last, 0, b));
    }
  }

  void backward(const T* h, const T* dy, const T* dh_last, T* dh, T* dz, T* dh0) const {
    T* const state = step(dh0, 0);  // the gradient of the state that the loop has come to, on its way to dh0
    for (int64_t b = begin_; b < end_; ++b) start_row(b, dh_last, dh0);
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      for (int64_t b = begin_; b < end_ && dy != nullptr; ++b) {
        if (!ended(s_, t, b)) add(s_.hidden, row(dy, t, b), row(dh0, 0, b));
      }
      if (dh != nullptr) std::copy_n(state, size_, step(dh, t));
      activate_backward(s_.nonlinearity, size_, step(h, t), state, step(dz, t));
      for (int64_t b = begin_; b < end_; ++b) {
        if (!ended(s_, t, b)) continue;
        std::fill_n(row(dz, t, b), s_.hidden, T{0});
        if (dh != nullptr) std::fill_n(row(dh, t, b), s_.hidden, T{0});
      }
      weight_.multiply(end_ - begin_, step(dz, t), s_.hidden, state, s_.hidden, Into::overwrite);
      for (int64_t b = begin_; b < end_; ++b) {
        if (ended(s_, t, b)) start_row(b, dh_last, dh0);
        if (cleared(s_, t, b)) std::fill_n(row(dh0, 0, b), s_.hidden, T{0});
      }
    }
  }

 private:
  template <class P>
  P* row(P* sequence, int64_t t, int64_t b) const {
    return sequence + (t * s_.batch + b) * s_.hidden;
  }
  template <class P>
  P* step(P* sequence, int64_t t) const {
    return row(sequence, t, begin_);
  }

  void start_row(int64_t b, const T* dh_last, T* dh0) const {
    if (dh_last != nullptr) {
      std::copy_n(row(dh_last, 0, b), s_.hidden, row(dh0, 0, b));
    } else {
      std::fill_n(row(dh0, 0, b), s_.hidden, T{0});
    }
  }

  /// `state` itself, or where a row is cleared before step t, a copy with that row zero.
  const T* without_cleared(int64_t t, const T* state, T* scratch) const {
    bool copied = false;
    for (int64_t b = begin_; b < end_; ++b) {
      if (!cleared(s_, t, b)) continue;
      if (!copied) std::copy_n(state, size_, step(scratch, 0));
      copied = true;
      std::fill_n(row(scratch, 0, b), s_.hidden, T{0});
    }
    return copied ? step(scratch, 0) : state;
  }

  const ElmanSequence& s_;
  const PackedMatrix<T>& weight_;
  const int64_t begin_, end_, size_;
};

/// Calls `body(begin, end)` for each thread's share of the rows. A thread needs two rows at least, to use a loaded
/// weight more than once.
template <class Body>
void share_rows(const ElmanSequence& s, const Body& body) {
  constexpr int64_t products_per_nanosecond = 16;
  const int64_t work = s.steps * s.batch * s.hidden * s.hidden / products_per_nanosecond;
  const int64_t shares = std::clamp<int64_t>(s.batch / 2, 1, threads_for(work));
  if (shares == 1) return body(int64_t{0}, s.batch);
  parallel_tasks(shares, [&](int64_t i) { body(s.batch * i / shares, s.batch * (i + 1) / shares); });
}

}  // namespace

template <class T>
void elman_forward(const ElmanSequence& sequence, const PackedMatrix<T>& weight, const T* h0, T* h, T* h_last) {
  std::vector<T> scratch(sequence.reset != nullptr ? sequence.batch * sequence.hidden : 0);
  share_rows(sequence, [&](int64_t begin, int64_t end) {
    Rows<T>(sequence, weight, begin, end).forward(h0, h, h_last, scratch.data());
  });
}

template <class T>
void elman_backward(const ElmanSequence& sequence, const PackedMatrix<T>& weight, const T* h, const T* dy,
                    const T* dh_last, T* dh, T* dz, T* dh0) {
  share_rows(sequence, [&](int64_t begin, int64_t end) {
    Rows<T>(sequence, weight, begin, end).backward(h, dy, dh_last, dh, dz, dh0);
  });
}

template void elman_forward(const ElmanSequence&, const PackedMatrix<float>&, const float*, float*, float*);
template void elman_forward(const ElmanSequence&, const PackedMatrix<double>&, const double*, double*, double*);
template void elman_backward(const ElmanSequence&, const PackedMatrix<float>&, const float*, const float*, const float*,
                             float*, float*, float*);
template void elman_backward(const ElmanSequence&, const PackedMatrix<double>&, const double*, const double*,
                             const double*, double*, double*, double*);

namespace plain {

template <class T>
void elman_forward(const ElmanSequence& s, const T* w, const T* h0, T* h, T* h_last) {
  const int64_t n = s.hidden;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> state(h0 + b * n, h0 + (b + 1) * n);
    for (int64_t t = 0; t < s.steps; ++t) {
      T* const now = h + (t * s.batch + b) * n;
      if (ended(s, t, b)) {
        std::fill_n(now, n, T{0});
        continue;
      }
      if (cleared(s, t, b)) std::fill(state.begin(), state.end(), T{0});
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) now[i] += w[i * n + j] * state[j];
        now[i] = s.nonlinearity == Nonlinearity::tanh ? std::tanh(now[i]) : now[i] < 0 ? 0 : now[i];
      }
      std::copy_n(now, n, state.data());
    }
    std::copy_n(state.data(), n, h_last + b * n);
  }
}

template <class T>
void elman_backward(const ElmanSequence& s, const T* w, const T* h, const T* dy, const T* dh_last, T* dh, T* dz,
                    T* dh0) {
  const int64_t n = s.hidden;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> state(n, T{0});
    if (dh_last != nullptr) std::copy_n(dh_last + b * n, n, state.data());
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const int64_t at = (t * s.batch + b) * n;
      const bool live = !ended(s, t, b);
      for (int64_t i = 0; i < n; ++i) {
        if (live && dy != nullptr) state[i] += dy[at + i];
        if (dh != nullptr) dh[at + i] = live ? state[i] : 0;
        const T slope = s.nonlinearity == Nonlinearity::tanh ? 1 - h[at + i] * h[at + i] : h[at + i] > 0 ? 1 : 0;
        dz[at + i] = live ? state[i] * slope : 0;
      }
      if (!live) continue;
      std::fill(state.begin(), state.end(), T{0});
      for (int64_t i = 0; i < n && !cleared(s, t, b); ++i) {
        for (int64_t j = 0; j < n; ++j) state[j] += dz[at + i] * w[i * n + j];
      }
    }
    std::copy_n(state.data(), n, dh0 + b * n);
  }
}

template void elman_forward(const ElmanSequence&, const float*, const float*, float*, float*);
template void elman_forward(const ElmanSequence&, const double*, const double*, double*, double*);
template void elman_backward(const ElmanSequence&, const float*, const float*, const float*, const float*, float*,
                             float*, float*);
template void elman_backward(const ElmanSequence&, const double*, const double*, const double*, const double*, double*,
                             double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
