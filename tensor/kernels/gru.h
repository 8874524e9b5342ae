#pragma once

#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/recurrence.h>

#include <cstdint>

/// The gated recurrent unit over a whole sequence, forward and backward, in two forms.
///
///   forward   r, z = sigmoid(pre_r + W_r h_{t-1}), sigmoid(pre_z + W_z h_{t-1}),   pre = W_ih x_t + biases
///             reset after    q = W_n h_{t-1} + b_n,   n = tanh(pre_n + r q)
///             reset before   q = r h_{t-1},           n = tanh(pre_n + W_n q)
///             h_t = (1 - z) n + z h_{t-1}
///   backward  from dh_t:   dn = dh_t (1 - z) (1 - n^2),   dz = dh_t (h_{t-1} - n) z (1 - z)
///             reset after    dq = dn r,       dr = dn q r (1 - r)
///             reset before   dq = W_n^T dn,   dr = dq h_{t-1} r (1 - r)
///             dh_{t-1} = dy_{t-1} + dh_t z + W_r^T dr + W_z^T dz + (W_n^T dq, or dq r)
///
/// where dr, dz, dn are taken before the gates' functions. Sequences are time-major [T, B, ..], without gaps; the gates
/// of a row are blocks of H numbers in the order r, z, n. The caller makes `pre` beforehand, in the form "reset before"
/// with all biases and in the other without b_n, which lies behind r; and the weights' gradients afterwards.
///
/// Rows are shared out over the threads once for the whole sequence (row_share.h); a row's numbers do not depend on the
/// thread count. Error: each step adds that of two products and three functions (packed_matrix.h, vector_math.h),
/// carried on by z and the weights.
namespace carousel::kernels {

enum class GruForm { reset_after, reset_before };

/// W_hh [3H, H] packed: the rows of r and z, and those of n.
template <class T>
struct GruWeights {
  PackedMatrix<T> gates, candidate;

  /// For forward: W^T.
  static GruWeights transposed(int64_t hidden, const T* w) {
    return {{hidden, 2 * hidden, w, 1, hidden}, {hidden, hidden, w + 2 * hidden * hidden, 1, hidden}};
  }
  /// For backward: W.
  static GruWeights straight(int64_t hidden, const T* w) {
    return {{2 * hidden, hidden, w, hidden, 1}, {hidden, hidden, w + 2 * hidden * hidden, hidden, 1}};
  }
};

/// The gates r, z, n [T, B, 3H], q [T, B, H] and h [T, B, H]; or the gradients of what is in `pre`, of q and of h.
template <class T>
struct GruSequences {
  T *gates, *q, *h;
};

/// `bias` is b_n [H]; null in the form "reset before". `out` is written; its gates hold `pre` on entry. What has ended
/// has zeros there. h0 and h_last [B, H] are the states before and after, h_last apart from those zeros.
template <class T>
void gru_forward(const Recurrence& sequence, GruForm form, const GruWeights<T>& weights, const T* bias, const T* h0,
                 GruSequences<T> out, T* h_last);

/// dy [T, B, H] and dh_last [B, H] are the gradients that arrive at the outputs and at h_last; null stands for zeros.
/// `gradients` and dh0 [B, H] (not dh_last's memory) are written, with zeros after a row's end; gradients.h may be
/// null, else it is the total derivative of the loss with respect to the state that each step made. The last steps of a
/// sequence may go first, in a call of their own, whose dh0 is the dh_last of the steps before; h0 is then the state
/// before them.
template <class T>
void gru_backward(const Recurrence& sequence, GruForm form, const GruWeights<T>& weights, const T* h0,
                  GruSequences<const T> memory, const T* dy, const T* dh_last, GruSequences<T> gradients, T* dh0);

namespace plain {
/// The same from W_hh [3H, H] itself.
template <class T>
void gru_forward(const Recurrence& sequence, GruForm form, const T* w, const T* bias, const T* h0, GruSequences<T> out,
                 T* h_last);
template <class T>
void gru_backward(const Recurrence& sequence, GruForm form, const T* w, const T* h0, GruSequences<const T> memory,
                  const T* dy, const T* dh_last, GruSequences<T> gradients, T* dh0);
}  // namespace plain

}  // namespace carousel::kernels
