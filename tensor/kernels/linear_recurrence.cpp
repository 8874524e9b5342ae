#include <carousel/tensor/kernels/linear_recurrence.h>
#include <carousel/tensor/kernels/row_share.h>

#include <algorithm>
#include <vector>

namespace carousel::kernels {
namespace {

/// The time loop over some of the rows: what one thread does.
template <class T>
class Rows : RowShare {
 public:
  Rows(const RowShare& rows, RecurrenceFactors<T> factors) : RowShare(rows), factors_(factors) {}

  /// `zeros` is [H].
  void forward(const T* h0, T* h, T* h_last, const T* zeros) const {
    for (int64_t t = 0; t < s_.steps; ++t) {
      for (int64_t b = begin_; b < end_; ++b) {
        const T *const a = factors_.at(t * s_.batch + b), *const past = before<T>(t, b, h0, h, zeros);
        T* const now = row(h, t, b);
        for (int64_t i = 0; i < s_.hidden; ++i) now[i] += a[i] * past[i];
      }
      clear_ended(t, h, s_.hidden);
    }
    write_last<T>(h0, h, h_last);
  }

  void backward(const T* dy, const T* dh_last, T* dh, T* dh0) const {
    start_rows(dh_last, dh0);
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      add_outputs(t, dy, dh0);
      note<T>(t, dh0, dh);
      for (int64_t b = begin_; b < end_; ++b) {
        const T* const a = factors_.at(t * s_.batch + b);
        T* const state = row(dh0, 0, b);
        for (int64_t i = 0; i < s_.hidden; ++i) state[i] *= a[i];
      }
      mend(t, dh_last, dh0);
    }
  }

 private:
  const RecurrenceFactors<T> factors_;
};

/// A number of the state costs what some of the products that share_rows counts would.
constexpr int64_t products_per_number = 8;

}  // namespace

template <class T>
void linear_recurrence(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* h0, T* h, T* h_last) {
  const std::vector<T> zeros(sequence.hidden);
  share_rows(sequence, products_per_number, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, factors).forward(h0, h, h_last, zeros.data());
  });
}

template <class T>
void linear_recurrence_backward(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* dy, const T* dh_last,
                                T* dh, T* dh0) {
  share_rows(sequence, products_per_number, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, factors).backward(dy, dh_last, dh, dh0);
  });
}

template void linear_recurrence(const Recurrence&, RecurrenceFactors<float>, const float*, float*, float*);
template void linear_recurrence(const Recurrence&, RecurrenceFactors<double>, const double*, double*, double*);
template void linear_recurrence_backward(const Recurrence&, RecurrenceFactors<float>, const float*, const float*,
                                         float*, float*);
template void linear_recurrence_backward(const Recurrence&, RecurrenceFactors<double>, const double*, const double*,
                                         double*, double*);

namespace plain {

template <class T>
void linear_recurrence(const Recurrence& s, RecurrenceFactors<T> factors, const T* h0, T* h, T* h_last) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t i = 0; i < s.hidden; ++i) {
      T state = h0[b * s.hidden + i];
      for (int64_t t = 0; t < s.steps; ++t) {
        T& now = h[(t * s.batch + b) * s.hidden + i];
        if (!s.ended(t, b)) state = factors.at(t * s.batch + b)[i] * (s.cleared(t, b) ? 0 : state) + now;
        now = s.ended(t, b) ? 0 : state;
      }
      h_last[b * s.hidden + i] = state;
    }
  }
}

template <class T>
void linear_recurrence_backward(const Recurrence& s, RecurrenceFactors<T> factors, const T* dy, const T* dh_last, T* dh,
                                T* dh0) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t i = 0; i < s.hidden; ++i) {
      T state = dh_last == nullptr ? 0 : dh_last[b * s.hidden + i];
      for (int64_t t = s.steps - 1; t >= 0; --t) {
        const int64_t at = (t * s.batch + b) * s.hidden + i;
        dh[at] = 0;
        if (s.ended(t, b)) continue;
        dh[at] = state + (dy == nullptr ? 0 : dy[at]);
        state = s.cleared(t, b) ? 0 : factors.at(t * s.batch + b)[i] * dh[at];
      }
      dh0[b * s.hidden + i] = state;
    }
  }
}

template void linear_recurrence(const Recurrence&, RecurrenceFactors<float>, const float*, float*, float*);
template void linear_recurrence(const Recurrence&, RecurrenceFactors<double>, const double*, double*, double*);
template void linear_recurrence_backward(const Recurrence&, RecurrenceFactors<float>, const float*, const float*,
                                         float*, float*);
template void linear_recurrence_backward(const Recurrence&, RecurrenceFactors<double>, const double*, const double*,
                                         double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
