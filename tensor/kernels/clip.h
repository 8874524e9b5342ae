#pragma once

#include <cstdint>

/// What clipping by the norm needs. Parallel over fixed ranges; the thread count does not change results.
namespace carousel::kernels {

/// sum_i x_i^2 in double, by ranges of 16384, so that squares of floats neither overflow nor get lost. Relative error
/// at most 2e-12 for up to 10^8 numbers.
double sum_of_squares(int64_t n, const float* x);
double sum_of_squares(int64_t n, const double* x);

/// x <- factor x, one rounding (two in float, whose factor is rounded first).
void scale(int64_t n, double factor, float* x);
void scale(int64_t n, double factor, double* x);

namespace plain {
template <class T>
double sum_of_squares(int64_t n, const T* x);
template <class T>
void scale(int64_t n, double factor, T* x);
}  // namespace plain

}  // namespace carousel::kernels
