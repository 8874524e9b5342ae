#include <carousel/tensor/kernels/elman.h>
#include <carousel/tensor/kernels/row_share.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace carousel::kernels {
namespace {

void activate(Nonlinearity f, int64_t n, auto* h) {
  if (f == Nonlinearity::tanh) return tanh(n, h, h);
  for (int64_t i = 0; i < n; ++i) h[i] = h[i] < 0 ? 0 : h[i];  // NaN stays
}

template <class T>
void activate_backward(Nonlinearity f, int64_t n, const T* h, const T* dh, T* dz) {
  if (f == Nonlinearity::tanh) return tanh_backward(n, h, dh, dz);
  for (int64_t i = 0; i < n; ++i) dz[i] = h[i] > 0 ? dh[i] : 0;
}

/// The time loop over some of the rows: what one thread does.
template <class T>
class Rows : RowShare {
 public:
  Rows(const RowShare& rows, Nonlinearity f, const PackedMatrix<T>& weight)
      : RowShare(rows), f_(f), weight_(weight), size_(count() * s_.hidden) {}

  /// `scratch` [B, H] is for states with cleared rows; null when no row is ever cleared.
  void forward(const T* h0, T* h, T* h_last, T* scratch) const {
    for (int64_t t = 0; t < s_.steps; ++t) {
      T* const now = step(h, t);
      weight_.multiply(count(), before(t, h0, h, scratch), s_.hidden, now, s_.hidden, Into::accumulate);
      activate(f_, size_, now);
      clear_ended(t, h, s_.hidden);
    }
    write_last(h0, h, h_last);
  }

  void backward(const T* h, const T* dy, const T* dh_last, T* dh, T* dz, T* dh0) const {
    T* const state = step(dh0, 0);  // the gradient of the state that the loop has come to, on its way to dh0
    start_rows(dh_last, dh0);
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      add_outputs(t, dy, dh0);
      note<T>(t, dh0, dh);
      activate_backward(f_, size_, step(h, t), state, step(dz, t));
      clear_ended(t, dz, s_.hidden);
      weight_.multiply(count(), step(dz, t), s_.hidden, state, s_.hidden, Into::overwrite);
      mend(t, dh_last, dh0);
    }
  }

 private:
  const Nonlinearity f_;
  const PackedMatrix<T>& weight_;
  const int64_t size_;
};

}  // namespace

template <class T>
void elman_forward(const Recurrence& sequence, Nonlinearity f, const PackedMatrix<T>& weight, const T* h0, T* h,
                   T* h_last) {
  std::vector<T> scratch(sequence.reset != nullptr ? sequence.batch * sequence.hidden : 0);
  share_rows(sequence, sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, f, weight).forward(h0, h, h_last, scratch.data());
  });
}

template <class T>
void elman_backward(const Recurrence& sequence, Nonlinearity f, const PackedMatrix<T>& weight, const T* h, const T* dy,
                    const T* dh_last, T* dh, T* dz, T* dh0) {
  share_rows(sequence, sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, f, weight).backward(h, dy, dh_last, dh, dz, dh0);
  });
}

template void elman_forward(const Recurrence&, Nonlinearity, const PackedMatrix<float>&, const float*, float*, float*);
template void elman_forward(const Recurrence&, Nonlinearity, const PackedMatrix<double>&, const double*, double*,
                            double*);
template void elman_backward(const Recurrence&, Nonlinearity, const PackedMatrix<float>&, const float*, const float*,
                             const float*, float*, float*, float*);
template void elman_backward(const Recurrence&, Nonlinearity, const PackedMatrix<double>&, const double*, const double*,
                             const double*, double*, double*, double*);

namespace plain {

template <class T>
void elman_forward(const Recurrence& s, Nonlinearity f, const T* w, const T* h0, T* h, T* h_last) {
  const int64_t n = s.hidden;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> state(h0 + b * n, h0 + (b + 1) * n);
    for (int64_t t = 0; t < s.steps; ++t) {
      T* const now = h + (t * s.batch + b) * n;
      if (s.ended(t, b)) {
        std::fill_n(now, n, T{0});
        continue;
      }
      if (s.cleared(t, b)) std::fill(state.begin(), state.end(), T{0});
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) now[i] += w[i * n + j] * state[j];
        now[i] = f == Nonlinearity::tanh ? std::tanh(now[i]) : now[i] < 0 ? 0 : now[i];
      }
      std::copy_n(now, n, state.data());
    }
    std::copy_n(state.data(), n, h_last + b * n);
  }
}

template <class T>
void elman_backward(const Recurrence& s, Nonlinearity f, const T* w, const T* h, const T* dy, const T* dh_last, T* dh,
                    T* dz, T* dh0) {
  const int64_t n = s.hidden;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> state(n, T{0});
    if (dh_last != nullptr) std::copy_n(dh_last + b * n, n, state.data());
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const int64_t at = (t * s.batch + b) * n;
      const bool live = !s.ended(t, b);
      for (int64_t i = 0; i < n; ++i) {
        if (live && dy != nullptr) state[i] += dy[at + i];
        if (dh != nullptr) dh[at + i] = live ? state[i] : 0;
        const T slope = f == Nonlinearity::tanh ? 1 - h[at + i] * h[at + i] : h[at + i] > 0 ? 1 : 0;
        dz[at + i] = live ? state[i] * slope : 0;
      }
      if (!live) continue;
      std::fill(state.begin(), state.end(), T{0});
      for (int64_t i = 0; i < n && !s.cleared(t, b); ++i) {
        for (int64_t j = 0; j < n; ++j) state[j] += dz[at + i] * w[i * n + j];
      }
    }
    std::copy_n(state.data(), n, dh0 + b * n);
  }
}

template void elman_forward(const Recurrence&, Nonlinearity, const float*, const float*, float*, float*);
template void elman_forward(const Recurrence&, Nonlinearity, const double*, const double*, double*, double*);
template void elman_backward(const Recurrence&, Nonlinearity, const float*, const float*, const float*, const float*,
                             float*, float*, float*);
template void elman_backward(const Recurrence&, Nonlinearity, const double*, const double*, const double*,
                             const double*, double*, double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
