#pragma once

#include <carousel/tensor/kernels/recurrence.h>

/// Causal convolution of each channel on its own over a whole sequence, forward and backward.
///
///   forward   y_t[i] = bias[i] + sum_k weight[i, k] x_{t-W+1+k}[i],  k = 0 .. W - 1
///   backward  dx_p[i] = sum_k weight[i, k] dy_{p+W-1-k}[i],  dweight[i, k] = sum_t dy_t[i] x_{t-W+1+k}[i],
///             dbias[i] = sum_t dy_t[i]
///
/// The inputs before the first step are those of a window [B, I, W-1], oldest first; the window after the last step is
/// the last W - 1 inputs, with what is left of the old window where there were fewer steps.
///
/// Sequences are time-major [T, B, I], weight is [I, W], all without gaps. Tasks are one row of the batch by 128
/// channels; a row's share of dweight and dbias is summed over its steps, then row by row: the thread count does not
/// change results. Error: y at most (W + 1) eps sum_k |weight x|; dweight and dbias (T + B) eps sum |terms|; eps is
/// 2^-24 in float, 2^-53 in double.
namespace carousel::kernels {

/// The row's state is its window: the past that a reset turns into zeros.
struct CausalConvShape : SequenceShape {
  int64_t channels, width;  // I, W >= 1
};

/// Writes y [T, B, I] and window_last [B, I, W-1] (not window's memory).
template <class T>
void causal_conv(const CausalConvShape& shape, const T* x, const T* window, const T* weight, const T* bias, T* y,
                 T* window_last);

/// What backward writes. dx is of the whole sequence, of which the given steps are written; dwindow is the gradient of
/// the window before them. The last two are [end - begin, B, I, W-1] or null: the window after each step and the total
/// derivative of the loss with respect to it, both 0 after a row's end.
template <class T>
struct CausalConvGradients {
  T *dx, *dweight, *dbias, *dwindow;
  T *windows = nullptr, *dwindows = nullptr;
};

/// Steps begin .. end - 1. dy [T, B, I] and dwindow_last [B, I, W-1], which arrives at the window after step end - 1,
/// may be null: zeros. The last steps of a sequence may go first, in a call of their own, whose dwindow is the
/// dwindow_last of the steps before and whose dweight and dbias are added to theirs.
template <class T>
void causal_conv_backward(const CausalConvShape& shape, int64_t begin, int64_t end, const T* x, const T* window,
                          const T* weight, const T* dy, const T* dwindow_last, const CausalConvGradients<T>& out);

namespace plain {
template <class T>
void causal_conv(const CausalConvShape& shape, const T* x, const T* window, const T* weight, const T* bias, T* y,
                 T* window_last);
template <class T>
void causal_conv_backward(const CausalConvShape& shape, int64_t begin, int64_t end, const T* x, const T* window,
                          const T* weight, const T* dy, const T* dwindow_last, const CausalConvGradients<T>& out);
}  // namespace plain

}  // namespace carousel::kernels
