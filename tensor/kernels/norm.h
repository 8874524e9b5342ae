#pragma once

#include <cstdint>

/// What norms, and clipping by them, need. Parallel over fixed ranges; the thread count does not change results.
namespace carousel::kernels {

/// sum_i x_i^2 in double, by ranges of 16384, so that squares of floats neither overflow nor get lost. Relative error
/// at most 2e-12 for up to 10^8 numbers.
double sum_of_squares(int64_t n, const float* x);
double sum_of_squares(int64_t n, const double* x);

/// x <- factor x, one rounding (two in float, whose factor is rounded first).
void scale(int64_t n, float* x, double factor);
void scale(int64_t n, double* x, double factor);

namespace plain {
template <class T>
double sum_of_squares(int64_t n, const T* x);
template <class T>
void scale(int64_t n, T* x, double factor);
}  // namespace plain

}  // namespace carousel::kernels
