#pragma once

#include <cstdint>

/// exp, tanh, sigmoid and softplus of n numbers in a row, and what backward needs of tanh. x and y may be the same
/// array.
///
/// Parallel over fixed ranges of 16384 elements; the thread count does not change results. Relative error of exp, tanh,
/// sigmoid and softplus: at most 3e-7 in float and 1e-15 in double where the result is a normal number; infinities give
/// the limits, NaN gives NaN (see simd_math-inl.h). The others round once or twice.
namespace carousel::kernels {

void exp(int64_t n, const float* x, float* y);
void exp(int64_t n, const double* x, double* y);
void tanh(int64_t n, const float* x, float* y);
void tanh(int64_t n, const double* x, double* y);
void sigmoid(int64_t n, const float* x, float* y);
void sigmoid(int64_t n, const double* x, double* y);
void softplus(int64_t n, const float* x, float* y);
void softplus(int64_t n, const double* x, double* y);

/// dx = dy (1 - y^2), y = tanh(x).
void tanh_backward(int64_t n, const float* y, const float* dy, float* dx);
void tanh_backward(int64_t n, const double* y, const double* dy, double* dx);

namespace plain {
template <class T>
void exp(int64_t n, const T* x, T* y);
template <class T>
void tanh(int64_t n, const T* x, T* y);
template <class T>
void sigmoid(int64_t n, const T* x, T* y);
template <class T>
void softplus(int64_t n, const T* x, T* y);
template <class T>
void tanh_backward(int64_t n, const T* y, const T* dy, T* dx);
}  // namespace plain

}  // namespace carousel::kernels
