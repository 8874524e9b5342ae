#pragma once

#include <carousel/tensor/kernels/recurrence.h>

/// The scan of a diagonal state-space layer over a whole sequence, forward and backward.
///
///   forward   h_t[i,n] = exp(dt_t[i] A[i,n]) h_{t-1}[i,n] + dt_t[i] B_t[n] u_t[i],
///             y_t[i] = sum_n C_t[n] h_t[i,n] + D[i] u_t[i]
///   backward  dh_t = C_t dy_t + exp(dt_{t+1} A) dh_{t+1},  and from it, with q_t[i,n] = dh_t exp(dt_t A) h_{t-1}:
///             du_t = D dy_t + dt_t sum_n B_t dh_t,   ddt_t = sum_n (A q_t + B_t u_t dh_t),   dA = sum_t dt_t q_t,
///             dB_t[n] = sum_i dt_t u_t dh_t,   dC_t[n] = sum_i dy_t h_t,   dD = sum_t dy_t u_t
///
/// A plain recurrence: nothing is divided by a decay, so decays may underflow to 0. With `fixed`, B and C are [I, N],
/// of each channel and the same at all steps, and dB and dC are summed over steps.
///
/// Layout: sequences are time-major, u, dt, y [T, B, I] and B, C [T, B, N]; A [I, N]; D [I]; states [B, I, N]; all
/// without gaps. Vectors run along channels. Forward keeps the state before every 16th step (`scan_block`), turned
/// around; backward makes those between again, a block at a time, and holds dB and dC of each task until they are
/// added: 2 T B N numbers for every 64 channels. Decays that are subnormal (e^-87 to e^-104 in float) cost several
/// times more.
///
/// Tasks are one row of the batch by 64 channels. What is summed over rows and tasks is added in their order, so the
/// thread count does not change results. Error: that of exp (vector_math.h) and a few roundings a step, carried on by
/// the decays; sums add (terms) eps sum |terms|, eps 2^-24 or 2^-53.
namespace carousel::kernels {

inline constexpr int64_t scan_block = 16;

struct ScanShape : SequenceShape {
  int64_t channels, states;  // I, N
  bool fixed = false;        // B and C are [I, N]

  int64_t blocks() const { return (steps + scan_block - 1) / scan_block; }
};

template <class T>
struct ScanInputs {
  const T *u, *dt, *a, *b, *c, *d;
};

/// Writes y [T, B, I], h_last [B, I, N] (not h0's memory) and, unless it is null, kept [blocks, B, N, I]: the state
/// before steps 0, 16, 32, ..
template <class T>
void selective_scan(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, T* y, T* h_last, T* kept);

/// What backward writes, each of its input's size. dh is [T, B, I, N] or null: the total derivative of the loss with
/// respect to the state that each step made, 0 after a row's end.
template <class T>
struct ScanGradients {
  T *u, *dt, *a, *b, *c, *d, *h0;
  T* dh = nullptr;
};

/// dy [T, B, I] and dh_last [B, I, N] may be null: zeros. The last steps of a sequence may go first, in a call of their
/// own, if they begin at a multiple of scan_block; its h0 gradient is the dh_last of the steps before, and those of A
/// and D (with `fixed`, B and C) are added to theirs.
template <class T>
void selective_scan_backward(const ScanShape& shape, const ScanInputs<T>& in, const T* kept, const T* dy,
                             const T* dh_last, const ScanGradients<T>& out);

namespace plain {
/// The same, from h0 instead of what was kept.
template <class T>
void selective_scan(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, T* y, T* h_last);
template <class T>
void selective_scan_backward(const ScanShape& shape, const ScanInputs<T>& in, const T* h0, const T* dy,
                             const T* dh_last, const ScanGradients<T>& out);
}  // namespace plain

}  // namespace carousel::kernels
