#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/lstm.h>
#include <carousel/tensor/kernels/row_share.h>

#include <algorithm>
#include <cmath>
#include <vector>

#ifndef CAROUSEL_LSTM_CELL  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_LSTM_CELL
namespace carousel::kernels {

/// The gates of one row; f is null in the form without a forget gate.
template <class T>
struct LstmGates {
  T *i, *f, *g, *o;
};

/// One row of one step; every pointer is to H numbers.
template <class T>
struct LstmForwardRow {
  LstmGates<T> gates;  // z on entry
  const T* before;
  T *c, *h;
};
template <class T>
struct LstmBackwardRow {
  LstmGates<const T> gates;
  const T *before, *c, *dh;
  T* dc;        // what comes from the step after; of c_{t-1} afterwards
  T* dc_total;  // or null
  LstmGates<T> dz;
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/lstm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class T>
struct LstmForward {
  const LstmForwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    const auto i = sigmoid(d, part.load(d, row.gates.i + at)), g = tanh(d, part.load(d, row.gates.g + at));
    const auto o = sigmoid(d, part.load(d, row.gates.o + at));
    auto kept = part.load(d, row.before + at);
    if (row.gates.f != nullptr) {
      const auto f = sigmoid(d, part.load(d, row.gates.f + at));
      part.store(f, d, row.gates.f + at);
      kept = hn::Mul(f, kept);
    }
    const auto c = hn::MulAdd(i, g, kept);
    part.store(i, d, row.gates.i + at);
    part.store(g, d, row.gates.g + at);
    part.store(o, d, row.gates.o + at);
    part.store(c, d, row.c + at);
    part.store(hn::Mul(o, tanh(d, c)), d, row.h + at);
  }
};

template <class T>
struct LstmBackward {
  const LstmBackwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    const auto one = hn::Set(d, static_cast<T>(1));
    const auto i = part.load(d, row.gates.i + at), g = part.load(d, row.gates.g + at);
    const auto o = part.load(d, row.gates.o + at), dh = part.load(d, row.dh + at);
    const auto squashed = tanh(d, part.load(d, row.c + at));
    const auto dc = hn::MulAdd(hn::Mul(dh, o), hn::NegMulAdd(squashed, squashed, one), part.load(d, row.dc + at));
    if (row.dc_total != nullptr) part.store(dc, d, row.dc_total + at);
    part.store(hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one, i))), d, row.dz.i + at);
    part.store(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one)), d, row.dz.g + at);
    part.store(hn::Mul(hn::Mul(dh, squashed), hn::Mul(o, hn::Sub(one, o))), d, row.dz.o + at);
    if (row.gates.f == nullptr) return part.store(dc, d, row.dc + at);
    const auto f = part.load(d, row.gates.f + at), before = part.load(d, row.before + at);
    part.store(hn::Mul(hn::Mul(dc, before), hn::Mul(f, hn::Sub(one, f))), d, row.dz.f + at);
    part.store(hn::Mul(dc, f), d, row.dc + at);
  }
};

void lstm_forward_float(int64_t n, const LstmForwardRow<float>& row) {
  for_each_vector<float>(n, LstmForward<float>{row});
}
void lstm_forward_double(int64_t n, const LstmForwardRow<double>& row) {
  for_each_vector<double>(n, LstmForward<double>{row});
}
void lstm_backward_float(int64_t n, const LstmBackwardRow<float>& row) {
  for_each_vector<float>(n, LstmBackward<float>{row});
}
void lstm_backward_double(int64_t n, const LstmBackwardRow<double>& row) {
  for_each_vector<double>(n, LstmBackward<double>{row});
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(lstm_forward_float);
HWY_EXPORT(lstm_forward_double);
HWY_EXPORT(lstm_backward_float);
HWY_EXPORT(lstm_backward_double);

namespace {

void run_cell(int64_t n, const LstmForwardRow<float>& row) { HWY_DYNAMIC_DISPATCH(lstm_forward_float)(n, row); }
void run_cell(int64_t n, const LstmForwardRow<double>& row) { HWY_DYNAMIC_DISPATCH(lstm_forward_double)(n, row); }
void run_cell(int64_t n, const LstmBackwardRow<float>& row) { HWY_DYNAMIC_DISPATCH(lstm_backward_float)(n, row); }
void run_cell(int64_t n, const LstmBackwardRow<double>& row) { HWY_DYNAMIC_DISPATCH(lstm_backward_double)(n, row); }

int64_t gate_count(LstmForm form) { return form == LstmForm::standard ? 4 : 3; }

template <class T>
LstmGates<T> gates_of(T* row, int64_t n, LstmForm form) {
  if (form == LstmForm::standard) return {.i = row, .f = row + n, .g = row + 2 * n, .o = row + 3 * n};
  return {.i = row, .f = nullptr, .g = row + n, .o = row + 2 * n};
}

/// The time loop over some of the rows: what one thread does.
template <class T>
class Rows : RowShare {
 public:
  Rows(const RowShare& rows, LstmForm form, const PackedMatrix<T>& weight, const T* zeros)
      : RowShare(rows), form_(form), weight_(weight), zeros_(zeros), n_(s_.hidden), width_(gate_count(form) * n_) {}

  /// `scratch` [B, H] is for states with cleared rows; null when no row is ever cleared.
  void forward(LstmStates<const T> start, T* gates, LstmStates<T> states, LstmStates<T> last, T* scratch) const {
    for (int64_t t = 0; t < s_.steps; ++t) {
      weight_.multiply(count(), before<T>(t, start.h, states.h, scratch), n_, step(gates, t, width_), width_,
                       Into::accumulate);
      for (int64_t b = begin_; b < end_; ++b) {
        if (s_.ended(t, b)) continue;
        run_cell(n_, LstmForwardRow<T>{.gates = gates_of(row(gates, t, b, width_), n_, form_),
                                       .before = before<T>(t, b, start.c, states.c, zeros_),
                                       .c = row(states.c, t, b),
                                       .h = row(states.h, t, b)});
      }
      clear_ended(t, gates, width_);
      clear_ended(t, states.h, n_);
      clear_ended(t, states.c, n_);
    }
    write_last<T>(start.h, states.h, last.h);
    write_last<T>(start.c, states.c, last.c);
  }

  void backward(const LstmMemory<T>& memory, const T* dy, LstmStates<const T> dlast, LstmStates<T> dstates, T* dz,
                LstmStates<T> dstart) const {
    start_rows<T>(dlast.h, dstart.h);  // the gradients of the state that the loop has come to, on their way to dstart
    start_rows<T>(dlast.c, dstart.c);
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      add_outputs(t, dy, dstart.h);
      note<T>(t, dstart.h, dstates.h);
      for (int64_t b = begin_; b < end_; ++b) {
        if (s_.ended(t, b)) continue;
        run_cell(n_, LstmBackwardRow<T>{.gates = gates_of(row(memory.gates, t, b, width_), n_, form_),
                                        .before = before<T>(t, b, memory.c0, memory.c, zeros_),
                                        .c = row(memory.c, t, b),
                                        .dh = row(dstart.h, 0, b),
                                        .dc = row(dstart.c, 0, b),
                                        .dc_total = dstates.c == nullptr ? nullptr : row(dstates.c, t, b),
                                        .dz = gates_of(row(dz, t, b, width_), n_, form_)});
      }
      clear_ended(t, dz, width_);
      if (dstates.c != nullptr) clear_ended(t, dstates.c, n_);
      weight_.multiply(count(), step(dz, t, width_), width_, step(dstart.h, 0), n_, Into::overwrite);
      mend<T>(t, dlast.h, dstart.h);
      mend<T>(t, dlast.c, dstart.c);
    }
  }

 private:
  const LstmForm form_;
  const PackedMatrix<T>& weight_;
  const T* const zeros_;  // [H]
  const int64_t n_, width_;
};

}  // namespace

template <class T>
void lstm_forward(const Recurrence& sequence, LstmForm form, const PackedMatrix<T>& weight, LstmStates<const T> start,
                  T* gates, LstmStates<T> states, LstmStates<T> last) {
  const std::vector<T> zeros(sequence.hidden);
  std::vector<T> scratch(sequence.reset != nullptr ? sequence.batch * sequence.hidden : 0);
  share_rows(sequence, gate_count(form) * sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, form, weight, zeros.data()).forward(start, gates, states, last, scratch.data());
  });
}

template <class T>
void lstm_backward(const Recurrence& sequence, LstmForm form, const PackedMatrix<T>& weight,
                   const LstmMemory<T>& memory, const T* dy, LstmStates<const T> dlast, LstmStates<T> dstates, T* dz,
                   LstmStates<T> dstart) {
  const std::vector<T> zeros(sequence.hidden);
  share_rows(sequence, gate_count(form) * sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, form, weight, zeros.data()).backward(memory, dy, dlast, dstates, dz, dstart);
  });
}

template void lstm_forward(const Recurrence&, LstmForm, const PackedMatrix<float>&, LstmStates<const float>, float*,
                           LstmStates<float>, LstmStates<float>);
template void lstm_forward(const Recurrence&, LstmForm, const PackedMatrix<double>&, LstmStates<const double>, double*,
                           LstmStates<double>, LstmStates<double>);
template void lstm_backward(const Recurrence&, LstmForm, const PackedMatrix<float>&, const LstmMemory<float>&,
                            const float*, LstmStates<const float>, LstmStates<float>, float*, LstmStates<float>);
template void lstm_backward(const Recurrence&, LstmForm, const PackedMatrix<double>&, const LstmMemory<double>&,
                            const double*, LstmStates<const double>, LstmStates<double>, double*, LstmStates<double>);

namespace plain {
namespace {

template <class T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

template <class T>
void lstm_forward(const Recurrence& s, LstmForm form, const T* w, LstmStates<const T> start, T* gates,
                  LstmStates<T> states, LstmStates<T> last) {
  const int64_t n = s.hidden, width = gate_count(form) * n;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> h(start.h + b * n, start.h + (b + 1) * n), c(start.c + b * n, start.c + (b + 1) * n);
    for (int64_t t = 0; t < s.steps; ++t) {
      const int64_t at = (t * s.batch + b) * n;
      T* const z = gates + (t * s.batch + b) * width;
      if (s.ended(t, b)) {
        std::fill_n(z, width, T{0});
        std::fill_n(states.h + at, n, T{0});
        std::fill_n(states.c + at, n, T{0});
        continue;
      }
      if (s.cleared(t, b)) {
        std::fill(h.begin(), h.end(), T{0});
        std::fill(c.begin(), c.end(), T{0});
      }
      for (int64_t j = 0; j < width; ++j) {
        for (int64_t k = 0; k < n; ++k) z[j] += w[j * n + k] * h[k];
      }
      const auto [i, f, g, o] = gates_of(z, n, form);
      for (int64_t k = 0; k < n; ++k) {
        i[k] = logistic(i[k]);
        if (f != nullptr) f[k] = logistic(f[k]);
        g[k] = std::tanh(g[k]);
        o[k] = logistic(o[k]);
        c[k] = (f != nullptr ? f[k] * c[k] : c[k]) + i[k] * g[k];
        h[k] = o[k] * std::tanh(c[k]);
        states.h[at + k] = h[k];
        states.c[at + k] = c[k];
      }
    }
    std::copy_n(h.data(), n, last.h + b * n);
    std::copy_n(c.data(), n, last.c + b * n);
  }
}

template <class T>
void lstm_backward(const Recurrence& s, LstmForm form, const T* w, const LstmMemory<T>& memory, const T* dy,
                   LstmStates<const T> dlast, LstmStates<T> dstates, T* dz, LstmStates<T> dstart) {
  const int64_t n = s.hidden, width = gate_count(form) * n;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> dh(n, T{0}), dc(n, T{0});
    if (dlast.h != nullptr) std::copy_n(dlast.h + b * n, n, dh.data());
    if (dlast.c != nullptr) std::copy_n(dlast.c + b * n, n, dc.data());
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const int64_t at = (t * s.batch + b) * n;
      T* const dz_row = dz + (t * s.batch + b) * width;
      const bool live = !s.ended(t, b), cut = s.cleared(t, b);
      const auto [i, f, g, o] = gates_of(memory.gates + (t * s.batch + b) * width, n, form);
      const auto [dz_i, dz_f, dz_g, dz_o] = gates_of(dz_row, n, form);
      const T* const earlier = t == 0 ? memory.c0 + b * n : memory.c + at - s.batch * n;
      std::fill_n(dz_row, width, T{0});
      for (int64_t k = 0; k < n; ++k) {
        if (live) {
          const T squashed = std::tanh(memory.c[at + k]);
          if (dy != nullptr) dh[k] += dy[at + k];
          dc[k] += dh[k] * o[k] * (1 - squashed * squashed);
          dz_i[k] = dc[k] * g[k] * i[k] * (1 - i[k]);
          if (f != nullptr && !cut) dz_f[k] = dc[k] * earlier[k] * f[k] * (1 - f[k]);
          dz_g[k] = dc[k] * i[k] * (1 - g[k] * g[k]);
          dz_o[k] = dh[k] * squashed * o[k] * (1 - o[k]);
        }
        if (dstates.h != nullptr) dstates.h[at + k] = live ? dh[k] : 0;
        if (dstates.c != nullptr) dstates.c[at + k] = live ? dc[k] : 0;
        if (live) dc[k] = cut ? 0 : f != nullptr ? dc[k] * f[k] : dc[k];
      }
      if (!live) continue;
      std::fill(dh.begin(), dh.end(), T{0});
      for (int64_t j = 0; j < width && !cut; ++j) {
        for (int64_t k = 0; k < n; ++k) dh[k] += dz_row[j] * w[j * n + k];
      }
    }
    std::copy_n(dh.data(), n, dstart.h + b * n);
    std::copy_n(dc.data(), n, dstart.c + b * n);
  }
}

template void lstm_forward(const Recurrence&, LstmForm, const float*, LstmStates<const float>, float*,
                           LstmStates<float>, LstmStates<float>);
template void lstm_forward(const Recurrence&, LstmForm, const double*, LstmStates<const double>, double*,
                           LstmStates<double>, LstmStates<double>);
template void lstm_backward(const Recurrence&, LstmForm, const float*, const LstmMemory<float>&, const float*,
                            LstmStates<const float>, LstmStates<float>, float*, LstmStates<float>);
template void lstm_backward(const Recurrence&, LstmForm, const double*, const LstmMemory<double>&, const double*,
                            LstmStates<const double>, LstmStates<double>, double*, LstmStates<double>);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
