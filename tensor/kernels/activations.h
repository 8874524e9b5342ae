#pragma once

#include <cstdint>

/// SiLU, GELU and the gate built on SiLU, of n numbers in a row, and the gradients of these and of softplus, each in
/// one pass over memory. With s the sigmoid, both activations are x s(z(x)), and their slope is
/// s(z) (1 + x z' s(-z)):
///
///   silu   z = x
///   gelu   z = 2 sqrt(2 / pi) (x + 0.044715 x^3), since 1/2 (1 + tanh(z / 2)) = s(z): GPT-2's form
///   gate   out = y silu(z),  dy = dout silu(z),  dz = dout y silu'(z)
///   softplus' = s
///
/// Results may be written over arguments. Parallel over fixed ranges of 16384 elements; the thread count does not
/// change results. Errors, with eps 2^-23 in float and 2^-52 in double: silu 4 eps relative; gelu 4 eps |x| (in the far
/// left tail, relative to the result, z times as much); the gradients 16 eps |dy|. NaN gives NaN; silu(-inf) and
/// gelu(-inf), which are -inf times 0, too.
namespace carousel::kernels {

void silu(int64_t n, const float* x, float* y);
void silu(int64_t n, const double* x, double* y);
void gelu(int64_t n, const float* x, float* y);
void gelu(int64_t n, const double* x, double* y);

void silu_backward(int64_t n, const float* x, const float* dy, float* dx);
void silu_backward(int64_t n, const double* x, const double* dy, double* dx);
void gelu_backward(int64_t n, const float* x, const float* dy, float* dx);
void gelu_backward(int64_t n, const double* x, const double* dy, double* dx);
void softplus_backward(int64_t n, const float* x, const float* dy, float* dx);
void softplus_backward(int64_t n, const double* x, const double* dy, double* dx);

void silu_gate(int64_t n, const float* y, const float* z, float* out);
void silu_gate(int64_t n, const double* y, const double* z, double* out);
void silu_gate_backward(int64_t n, const float* y, const float* z, const float* dout, float* dy, float* dz);
void silu_gate_backward(int64_t n, const double* y, const double* z, const double* dout, double* dy, double* dz);

namespace plain {
template <class T>
void silu(int64_t n, const T* x, T* y);
template <class T>
void gelu(int64_t n, const T* x, T* y);
template <class T>
void silu_backward(int64_t n, const T* x, const T* dy, T* dx);
template <class T>
void gelu_backward(int64_t n, const T* x, const T* dy, T* dx);
template <class T>
void softplus_backward(int64_t n, const T* x, const T* dy, T* dx);
template <class T>
void silu_gate(int64_t n, const T* y, const T* z, T* out);
template <class T>
void silu_gate_backward(int64_t n, const T* y, const T* z, const T* dout, T* dy, T* dz);
}  // namespace plain

}  // namespace carousel::kernels
