#pragma once

#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/recurrence.h>

#include <cstdint>

/// The simple recurrent network of Elman over a whole sequence, forward and backward.
///
///   forward   h_t = f(pre_t + h_{t-1} W^T),                 pre_t = W_ih x_t + both biases, f = tanh or relu
///   backward  dh_t = dy_t + dz_{t+1} W,  dz_t = dh_t f'(h_t)
///
/// Sequences are time-major [T, B, H], without gaps. The caller makes `pre` beforehand and the weights' gradients from
/// dz afterwards, each by products over the rows of many steps.
///
/// Rows are shared out over the threads once for the whole sequence (row_share.h); a row's numbers do not depend on
/// the thread count. Error: each step adds that of one product and one tanh (packed_matrix.h, vector_math.h), carried
/// on by f and W.
namespace carousel::kernels {

enum class Nonlinearity { tanh, relu };

/// `weight` is W^T packed: PackedMatrix(H, H, W, 1, H). `h` holds pre on entry and the outputs afterwards; h0 and
/// h_last [B, H] are the states before and after, h_last apart from the zero outputs of rows that have ended.
template <class T>
void elman_forward(const Recurrence& sequence, Nonlinearity f, const PackedMatrix<T>& weight, const T* h0, T* h,
                   T* h_last);

/// `weight` is W packed: PackedMatrix(H, H, W, H, 1). dy [T, B, H] and dh_last [B, H] are the gradients that arrive at
/// the outputs and at h_last; null stands for zeros. dz [T, B, H] and dh0 [B, H] (not dh_last's memory) are written,
/// and so is dh [T, B, H] unless it is null: the total derivative of the loss with respect to the state that each step
/// made, 0 after a row's end. The last steps of a sequence may go first, in a call of their own, whose dh0 is the
/// dh_last of the steps before.
template <class T>
void elman_backward(const Recurrence& sequence, Nonlinearity f, const PackedMatrix<T>& weight, const T* h, const T* dy,
                    const T* dh_last, T* dh, T* dz, T* dh0);

namespace plain {
/// The same from W [H, H] itself.
template <class T>
void elman_forward(const Recurrence& sequence, Nonlinearity f, const T* w, const T* h0, T* h, T* h_last);
template <class T>
void elman_backward(const Recurrence& sequence, Nonlinearity f, const T* w, const T* h, const T* dy, const T* dh_last,
                    T* dh, T* dz, T* dh0);
}  // namespace plain

}  // namespace carousel::kernels
