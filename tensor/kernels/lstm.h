#pragma once

#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/recurrence.h>

#include <cstdint>

/// Long short-term memory over a whole sequence, forward and backward.
///
///   forward   z_t = pre_t + h_{t-1} W^T,   pre_t = W_ih x_t + both biases
///             i, f, o = sigmoid(z_i), sigmoid(z_f), sigmoid(z_o),   g = tanh(z_g)
///             c_t = f c_{t-1} + i g,   h_t = o tanh(c_t)
///   backward  dh_t = dy_t + dz_{t+1} W,   dc_t = f_{t+1} dc_{t+1} + dh_t o (1 - tanh(c_t)^2)
///             dz_i = dc_t g i (1 - i),   dz_f = dc_t c_{t-1} f (1 - f),   dz_g = dc_t i (1 - g^2),
///             dz_o = dh_t tanh(c_t) o (1 - o)
///
/// Sequences are time-major [T, B, ..], without gaps. The G gates of a row are blocks of H numbers in the order i, f,
/// g, o; the form without a forget gate has i, g, o, and 1 for f. The caller makes `pre` beforehand and the weights'
/// gradients from dz afterwards, each by products over the rows of many steps. tanh(c) is not kept: to compute it
/// again, one of five such functions, costs about what fetching another sequence from memory would, and that memory is
/// saved.
///
/// Rows are shared out over the threads once for the whole sequence (row_share.h); a row's numbers do not depend on the
/// thread count. Error: each step adds that of one product and five functions (packed_matrix.h, vector_math.h), carried
/// on by f and W.
namespace carousel::kernels {

enum class LstmForm { standard, without_forget_gate };

/// h and c: of one moment [B, H], or of all steps [T, B, H].
template <class T>
struct LstmStates {
  T *h, *c;
};

/// `weight` is W^T packed: PackedMatrix(H, G H, W, 1, H). `gates` [T, B, G H] holds pre on entry and the gates
/// afterwards. `states` and `last` are written, `last` apart from the zero outputs of rows that have ended; what has
/// ended has zeros in `gates` and `states`.
template <class T>
void lstm_forward(const Recurrence& sequence, LstmForm form, const PackedMatrix<T>& weight, LstmStates<const T> start,
                  T* gates, LstmStates<T> states, LstmStates<T> last);

/// What forward left: the gates, and c before the first step and after each.
template <class T>
struct LstmMemory {
  const T *gates, *c0, *c;
};

/// `weight` is W packed: PackedMatrix(G H, H, W, H, 1). dy [T, B, H] and `dlast` are the gradients that arrive at the
/// outputs and at the last state; null stands for zeros. dz [T, B, G H] and `dstart` (not dlast's memory) are written,
/// and so is what is not null in `dstates`: the total derivatives of the loss with respect to the h and c that each
/// step made, 0 after a row's end. The last steps of a sequence may go first, in a call of their own, whose `dstart` is
/// the `dlast` of the steps before.
template <class T>
void lstm_backward(const Recurrence& sequence, LstmForm form, const PackedMatrix<T>& weight,
                   const LstmMemory<T>& memory, const T* dy, LstmStates<const T> dlast, LstmStates<T> dstates, T* dz,
                   LstmStates<T> dstart);

namespace plain {
/// The same from W [G H, H] itself.
template <class T>
void lstm_forward(const Recurrence& sequence, LstmForm form, const T* w, LstmStates<const T> start, T* gates,
                  LstmStates<T> states, LstmStates<T> last);
template <class T>
void lstm_backward(const Recurrence& sequence, LstmForm form, const T* w, const LstmMemory<T>& memory, const T* dy,
                   LstmStates<const T> dlast, LstmStates<T> dstates, T* dz, LstmStates<T> dstart);
}  // namespace plain

}  // namespace carousel::kernels
