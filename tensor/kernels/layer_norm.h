#pragma once

#include <cstdint>

/// Layer normalisation of rows, forward and backward; and RMS normalisation (Zhang, Sennrich 2019), which is the same
/// with 0 in place of the means of x and g.
///
///   forward   y = (x - mean) r weight + bias,  r = 1 / sqrt(variance + eps), the variance from a second pass over
///             x - mean
///   backward  n = (x - mean) r,  g = dy weight,  dx = r (g - mean(g) - n mean(g n)),  dweight = sum_rows dy n,
///             dbias = sum_rows dy
///
/// Layout: x, y, dx, dy [rows, size] without gaps; mean and r [rows], written by forward for backward; weight and bias
/// [size]. dweight and dbias are overwritten. dx may be dy.
///
/// Parallel over ranges of 64 rows, whose sums for dweight and dbias are added in order: the thread count does not
/// change results. Sums over a row run in at least one and at most 16 strands in T: the relative error of a mean, of r
/// and of dx is at most (size + 8) eps relative to the mean magnitude of what is summed, eps 2^-24 or 2^-53.
namespace carousel::kernels {

struct LayerNormShape {
  int64_t rows, size;
  double eps;
  bool centered = true;  // false: RMS normalisation
};

void layer_norm(const LayerNormShape& shape, const float* x, const float* weight, const float* bias, float* y,
                float* mean, float* r);
void layer_norm(const LayerNormShape& shape, const double* x, const double* weight, const double* bias, double* y,
                double* mean, double* r);
void layer_norm_backward(const LayerNormShape& shape, const float* x, const float* weight, const float* mean,
                         const float* r, const float* dy, float* dx, float* dweight, float* dbias);
void layer_norm_backward(const LayerNormShape& shape, const double* x, const double* weight, const double* mean,
                         const double* r, const double* dy, double* dx, double* dweight, double* dbias);

namespace plain {
template <class T>
void layer_norm(const LayerNormShape& shape, const T* x, const T* weight, const T* bias, T* y, T* mean, T* r);
template <class T>
void layer_norm_backward(const LayerNormShape& shape, const T* x, const T* weight, const T* mean, const T* r,
                         const T* dy, T* dx, T* dweight, T* dbias);
}  // namespace plain

}  // namespace carousel::kernels
