#include <carousel/tensor/kernels/gru.h>
#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/row_share.h>

#include <algorithm>
#include <cmath>
#include <vector>

#ifndef CAROUSEL_GRU_CELL  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_GRU_CELL
namespace carousel::kernels {

/// One row of one step; every pointer is to H numbers.
template <class T>
struct GruForwardRow {
  GruForm form;
  T *r, *z, *n;   // pre on entry
  T* q;           // in the form "reset after" without its bias on entry
  const T* bias;  // of q; only there
  const T* before;
  T* h;
};
template <class T>
struct GruBackwardRow {
  GruForm form;
  const T *r, *z, *n, *q, *before;
  T* dh;  // of h_t on entry, and without what comes through products of h_{t-1} afterwards
  T *dr, *dz, *dn, *dq;
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/gru.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

/// r, z and q.
template <class T>
struct GruForwardGates {
  const GruForwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    const auto r = sigmoid(d, part.load(d, row.r + at));
    part.store(r, d, row.r + at);
    part.store(sigmoid(d, part.load(d, row.z + at)), d, row.z + at);
    const auto q = row.form == GruForm::reset_after ? hn::Add(part.load(d, row.q + at), part.load(d, row.bias + at))
                                                    : hn::Mul(r, part.load(d, row.before + at));
    part.store(q, d, row.q + at);
  }
};

/// n and h.
template <class T>
struct GruForwardState {
  const GruForwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    auto n = part.load(d, row.n + at);
    if (row.form == GruForm::reset_after) n = hn::MulAdd(part.load(d, row.r + at), part.load(d, row.q + at), n);
    n = tanh(d, n);
    part.store(n, d, row.n + at);
    const auto z = part.load(d, row.z + at);
    const auto fresh = hn::Mul(hn::Sub(hn::Set(d, static_cast<T>(1)), z), n);
    part.store(hn::MulAdd(z, part.load(d, row.before + at), fresh), d, row.h + at);
  }
};

/// dz and dn, and dh through z.
template <class T>
struct GruBackwardState {
  const GruBackwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    const auto one = hn::Set(d, static_cast<T>(1));
    const auto z = part.load(d, row.z + at), n = part.load(d, row.n + at);
    const auto dh = part.load(d, row.dh + at), rest = hn::Sub(one, z);
    const auto change = hn::Sub(part.load(d, row.before + at), n);
    part.store(hn::Mul(hn::Mul(dh, rest), hn::NegMulAdd(n, n, one)), d, row.dn + at);
    part.store(hn::Mul(hn::Mul(dh, change), hn::Mul(z, rest)), d, row.dz + at);
    part.store(hn::Mul(dh, z), d, row.dh + at);
  }
};

/// dr, with dq in the form "reset after"; in the other dq is there, and gives dh its part through r.
template <class T>
struct GruBackwardGates {
  const GruBackwardRow<T>& row;

  template <class D, class Part>
  HWY_INLINE void operator()(D d, int64_t at, Part part) const {
    const auto r = part.load(d, row.r + at);
    const auto slope = hn::Mul(r, hn::Sub(hn::Set(d, static_cast<T>(1)), r));
    if (row.form == GruForm::reset_after) {
      const auto dn = part.load(d, row.dn + at);
      part.store(hn::Mul(dn, r), d, row.dq + at);
      part.store(hn::Mul(hn::Mul(dn, part.load(d, row.q + at)), slope), d, row.dr + at);
    } else {
      const auto dq = part.load(d, row.dq + at);
      part.store(hn::MulAdd(dq, r, part.load(d, row.dh + at)), d, row.dh + at);
      part.store(hn::Mul(hn::Mul(dq, part.load(d, row.before + at)), slope), d, row.dr + at);
    }
  }
};

#define CAROUSEL_GRU_STAGE(name, Stage, Row)                                                            \
  void name##_float(int64_t n, const Row<float>& row) { for_each_vector<float>(n, Stage<float>{row}); } \
  void name##_double(int64_t n, const Row<double>& row) { for_each_vector<double>(n, Stage<double>{row}); }
CAROUSEL_GRU_STAGE(gru_forward_gates, GruForwardGates, GruForwardRow)
CAROUSEL_GRU_STAGE(gru_forward_state, GruForwardState, GruForwardRow)
CAROUSEL_GRU_STAGE(gru_backward_gates, GruBackwardGates, GruBackwardRow)
CAROUSEL_GRU_STAGE(gru_backward_state, GruBackwardState, GruBackwardRow)
#undef CAROUSEL_GRU_STAGE

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {
namespace {

#define CAROUSEL_GRU_STAGE(name, Row)                                                         \
  HWY_EXPORT(name##_float);                                                                   \
  HWY_EXPORT(name##_double);                                                                  \
  void name(int64_t n, const Row<float>& row) { HWY_DYNAMIC_DISPATCH(name##_float)(n, row); } \
  void name(int64_t n, const Row<double>& row) { HWY_DYNAMIC_DISPATCH(name##_double)(n, row); }
CAROUSEL_GRU_STAGE(gru_forward_gates, GruForwardRow)
CAROUSEL_GRU_STAGE(gru_forward_state, GruForwardRow)
CAROUSEL_GRU_STAGE(gru_backward_gates, GruBackwardRow)
CAROUSEL_GRU_STAGE(gru_backward_state, GruBackwardRow)
#undef CAROUSEL_GRU_STAGE

/// The time loop over some of the rows: what one thread does.
template <class T>
class Rows : RowShare {
 public:
  /// `zeros` is [H].
  Rows(const RowShare& rows, GruForm form, const GruWeights<T>& weights, const T* zeros)
      : RowShare(rows), form_(form), weights_(weights), zeros_(zeros), n_(s_.hidden), width_(3 * n_) {}

  /// `scratch` [B, H] is for states with cleared rows; null when no row is ever cleared.
  void forward(const T* bias, const T* h0, GruSequences<T> out, T* h_last, T* scratch) const {
    const auto row_at = [&](int64_t t, int64_t b) {
      T* const gates = row(out.gates, t, b, width_);
      return GruForwardRow<T>{.form = form_,
                              .r = gates,
                              .z = gates + n_,
                              .n = gates + 2 * n_,
                              .q = row(out.q, t, b),
                              .bias = bias,
                              .before = before<T>(t, b, h0, out.h, zeros_),
                              .h = row(out.h, t, b)};
    };
    for (int64_t t = 0; t < s_.steps; ++t) {
      T* const gates = step(out.gates, t, width_);
      const T* const states = before<T>(t, h0, out.h, scratch);
      weights_.gates.multiply(count(), states, n_, gates, width_, Into::accumulate);
      if (form_ == GruForm::reset_after) {
        weights_.candidate.multiply(count(), states, n_, step(out.q, t), n_, Into::overwrite);
      }
      for_live_rows(t, [&](int64_t b) { gru_forward_gates(n_, row_at(t, b)); });
      clear_ended(t, out.q, n_);
      if (form_ == GruForm::reset_before) {
        weights_.candidate.multiply(count(), step(out.q, t), n_, gates + 2 * n_, width_, Into::accumulate);
      }
      for_live_rows(t, [&](int64_t b) { gru_forward_state(n_, row_at(t, b)); });
      clear_ended(t, out.gates, width_);
      clear_ended(t, out.h, n_);
    }
    write_last<T>(h0, out.h, h_last);
  }

  void backward(const T* h0, GruSequences<const T> memory, const T* dy, const T* dh_last, GruSequences<T> gradients,
                T* dh0) const {
    const auto row_at = [&](int64_t t, int64_t b) {
      const T* const gates = row(memory.gates, t, b, width_);
      T* const dgates = row(gradients.gates, t, b, width_);
      return GruBackwardRow<T>{.form = form_,
                               .r = gates,
                               .z = gates + n_,
                               .n = gates + 2 * n_,
                               .q = row(memory.q, t, b),
                               .before = before<T>(t, b, h0, memory.h, zeros_),
                               .dh = row(dh0, 0, b),
                               .dr = dgates,
                               .dz = dgates + n_,
                               .dn = dgates + 2 * n_,
                               .dq = row(gradients.q, t, b)};
    };
    T* const state = step(dh0, 0);  // the gradient of the state that the loop has come to, on its way to dh0
    start_rows<T>(dh_last, dh0);
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      T *const gates = step(gradients.gates, t, width_), *const dq = step(gradients.q, t);
      add_outputs(t, dy, dh0);
      note<T>(t, dh0, gradients.h);
      clear_ended(t, gradients.gates, width_);
      for_live_rows(t, [&](int64_t b) { gru_backward_state(n_, row_at(t, b)); });
      if (form_ == GruForm::reset_before) {
        weights_.candidate.multiply(count(), gates + 2 * n_, width_, dq, n_, Into::overwrite);
      }
      clear_ended(t, gradients.q, n_);
      for_live_rows(t, [&](int64_t b) { gru_backward_gates(n_, row_at(t, b)); });
      if (form_ == GruForm::reset_after) {
        weights_.candidate.multiply(count(), dq, n_, state, n_, Into::accumulate);
      }
      weights_.gates.multiply(count(), gates, width_, state, n_, Into::accumulate);
      mend<T>(t, dh_last, dh0);
    }
  }

 private:
  template <class Body>
  void for_live_rows(int64_t t, const Body& body) const {
    for (int64_t b = begin_; b < end_; ++b) {
      if (!s_.ended(t, b)) body(b);
    }
  }

  const GruForm form_;
  const GruWeights<T>& weights_;
  const T* const zeros_;
  const int64_t n_, width_;
};

}  // namespace

template <class T>
void gru_forward(const Recurrence& sequence, GruForm form, const GruWeights<T>& weights, const T* bias, const T* h0,
                 GruSequences<T> out, T* h_last) {
  const std::vector<T> zeros(sequence.hidden);
  std::vector<T> scratch(sequence.reset != nullptr ? sequence.batch * sequence.hidden : 0);
  share_rows(sequence, 3 * sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, form, weights, zeros.data()).forward(bias, h0, out, h_last, scratch.data());
  });
}

template <class T>
void gru_backward(const Recurrence& sequence, GruForm form, const GruWeights<T>& weights, const T* h0,
                  GruSequences<const T> memory, const T* dy, const T* dh_last, GruSequences<T> gradients, T* dh0) {
  const std::vector<T> zeros(sequence.hidden);
  share_rows(sequence, 3 * sequence.hidden, [&](int64_t begin, int64_t end) {
    Rows<T>({sequence, begin, end}, form, weights, zeros.data()).backward(h0, memory, dy, dh_last, gradients, dh0);
  });
}

template void gru_forward(const Recurrence&, GruForm, const GruWeights<float>&, const float*, const float*,
                          GruSequences<float>, float*);
template void gru_forward(const Recurrence&, GruForm, const GruWeights<double>&, const double*, const double*,
                          GruSequences<double>, double*);
template void gru_backward(const Recurrence&, GruForm, const GruWeights<float>&, const float*,
                           GruSequences<const float>, const float*, const float*, GruSequences<float>, float*);
template void gru_backward(const Recurrence&, GruForm, const GruWeights<double>&, const double*,
                           GruSequences<const double>, const double*, const double*, GruSequences<double>, double*);

namespace plain {
namespace {

template <class T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

/// sum_k w[k stride] x[k].
template <class T>
T dot(int64_t n, const T* w, int64_t stride, const T* x) {
  T sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += w[k * stride] * x[k];
  return sum;
}

}  // namespace

template <class T>
void gru_forward(const Recurrence& s, GruForm form, const T* w, const T* bias, const T* h0, GruSequences<T> out,
                 T* h_last) {
  const int64_t n = s.hidden;
  const bool after = form == GruForm::reset_after;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> state(h0 + b * n, h0 + (b + 1) * n);
    for (int64_t t = 0; t < s.steps; ++t) {
      const int64_t at = t * s.batch + b;
      T *const gates = out.gates + at * 3 * n, *const q = out.q + at * n, *const h = out.h + at * n;
      if (s.ended(t, b)) {
        std::fill_n(gates, 3 * n, T{0});
        std::fill_n(q, n, T{0});
        std::fill_n(h, n, T{0});
        continue;
      }
      if (s.cleared(t, b)) std::fill(state.begin(), state.end(), T{0});
      for (int64_t k = 0; k < 2 * n; ++k) gates[k] = logistic(gates[k] + dot(n, w + k * n, 1, state.data()));
      const T* const w_n = w + 2 * n * n;
      for (int64_t k = 0; k < n; ++k)
        q[k] = after ? bias[k] + dot(n, w_n + k * n, 1, state.data()) : gates[k] * state[k];
      for (int64_t k = 0; k < n; ++k) {
        T& candidate = gates[2 * n + k];
        candidate = std::tanh(candidate + (after ? gates[k] * q[k] : dot(n, w_n + k * n, 1, q)));
        h[k] = (1 - gates[n + k]) * candidate + gates[n + k] * state[k];
      }
      std::copy_n(h, n, state.data());
    }
    std::copy_n(state.data(), n, h_last + b * n);
  }
}

template <class T>
void gru_backward(const Recurrence& s, GruForm form, const T* w, const T* h0, GruSequences<const T> memory, const T* dy,
                  const T* dh_last, GruSequences<T> gradients, T* dh0) {
  const int64_t n = s.hidden;
  const bool after = form == GruForm::reset_after;
  const T* const w_n = w + 2 * n * n;
  for (int64_t b = 0; b < s.batch; ++b) {
    std::vector<T> dh(n, T{0});
    if (dh_last != nullptr) std::copy_n(dh_last + b * n, n, dh.data());
    for (int64_t t = s.steps - 1; t >= 0; --t) {
      const int64_t at = t * s.batch + b;
      const T *const r = memory.gates + at * 3 * n, *const z = r + n, *const c = z + n, *const q = memory.q + at * n;
      T *const dr = gradients.gates + at * 3 * n, *const dz = dr + n, *const dn = dz + n;
      T *const dq = gradients.q + at * n, *const note = gradients.h == nullptr ? nullptr : gradients.h + at * n;
      if (s.ended(t, b)) {
        std::fill_n(dr, 3 * n, T{0});
        std::fill_n(dq, n, T{0});
        if (note != nullptr) std::fill_n(note, n, T{0});
        continue;
      }
      std::vector<T> before(n, T{0});
      if (!s.cleared(t, b)) std::copy_n(t == 0 ? h0 + b * n : memory.h + (at - s.batch) * n, n, before.data());
      for (int64_t k = 0; k < n; ++k) {
        if (dy != nullptr) dh[k] += dy[at * n + k];
        if (note != nullptr) note[k] = dh[k];
        dn[k] = dh[k] * (1 - z[k]) * (1 - c[k] * c[k]);
        dz[k] = dh[k] * (before[k] - c[k]) * z[k] * (1 - z[k]);
      }
      for (int64_t k = 0; k < n; ++k) {
        dq[k] = after ? dn[k] * r[k] : dot(n, w_n + k, n, dn);
        dr[k] = (after ? dn[k] * q[k] : dq[k] * before[k]) * r[k] * (1 - r[k]);
      }
      for (int64_t k = 0; k < n; ++k) {
        dh[k] = dh[k] * z[k] + dot(2 * n, w + k, n, dr) + (after ? dot(n, w_n + k, n, dq) : dq[k] * r[k]);
        if (s.cleared(t, b)) dh[k] = 0;
      }
    }
    std::copy_n(dh.data(), n, dh0 + b * n);
  }
}

template void gru_forward(const Recurrence&, GruForm, const float*, const float*, const float*, GruSequences<float>,
                          float*);
template void gru_forward(const Recurrence&, GruForm, const double*, const double*, const double*, GruSequences<double>,
                          double*);
template void gru_backward(const Recurrence&, GruForm, const float*, const float*, GruSequences<const float>,
                           const float*, const float*, GruSequences<float>, float*);
template void gru_backward(const Recurrence&, GruForm, const double*, const double*, GruSequences<const double>,
                           const double*, const double*, GruSequences<double>, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
