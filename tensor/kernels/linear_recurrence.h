#pragma once

#include <carousel/tensor/kernels/recurrence.h>

#include <cstdint>

/// The recurrence without a matrix, over a whole sequence, forward and backward.
///
///   forward   h_t = a_t h_{t-1} + b_t
///   backward  dh_t = dy_t + a_{t+1} dh_{t+1},   db_t = dh_t
///
/// element by element. Sequences are time-major [T, B, H], without gaps. The caller makes the gradient of a afterwards,
/// da_t = dh_t h_{t-1}.
///
/// Rows are shared out over the threads once for the whole sequence (row_share.h); a row's numbers do not depend on the
/// thread count. Error: each step adds two roundings of the state, carried on by a.
namespace carousel::kernels {

/// a, [T, B, H] with a stride of H, or [H] for all steps and rows with a stride of 0.
template <class T>
struct RecurrenceFactors {
  const T* a;
  int64_t stride;

  const T* at(int64_t row) const { return a + row * stride; }
};

/// `h` holds b on entry and the states afterwards; h0 and h_last [B, H] are those before and after, h_last apart from
/// the zeros of rows that have ended.
template <class T>
void linear_recurrence(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* h0, T* h, T* h_last);

/// dy [T, B, H] and dh_last [B, H] are the gradients that arrive at the states and at h_last; null stands for zeros.
/// dh [T, B, H] and dh0 [B, H] (not dh_last's memory) are written, dh with zeros after a row's end.
template <class T>
void linear_recurrence_backward(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* dy, const T* dh_last,
                                T* dh, T* dh0);

namespace plain {
template <class T>
void linear_recurrence(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* h0, T* h, T* h_last);
template <class T>
void linear_recurrence_backward(const Recurrence& sequence, RecurrenceFactors<T> factors, const T* dy, const T* dh_last,
                                T* dh, T* dh0);
}  // namespace plain

}  // namespace carousel::kernels
