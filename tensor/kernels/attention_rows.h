#pragma once

#include <cstdint>

/// Inside the attention kernel: SIMD over one row of scores, or one vector against many. Everything runs on the calling
/// thread. Sums run in T, lane by lane. The plain attention of attention.h is the twin of all of them.
namespace carousel::kernels {

/// The largest number, NaN left out; -inf when there is none.
float largest(int64_t n, const float* x);
double largest(int64_t n, const double* x);

/// x <- exp(x - shift); returns the sum.
float exp_and_sum(int64_t n, float shift, float* x);
double exp_and_sum(int64_t n, double shift, double* x);

/// s <- p = exp(s - lse), dp <- p (dp - delta): from a score and the gradient of its probability to the probability and
/// the gradient of the score. Element i has lse[i * step] and delta[i * step], step 0 or 1; lse = -inf gives p = 0.
void softmax_gradient(int64_t n, const float* lse, const float* delta, int64_t step, float* s, float* dp);
void softmax_gradient(int64_t n, const double* lse, const double* delta, int64_t step, double* s, double* dp);

/// out[i] = x . row i, for rows of `width` numbers, `stride` apart.
void dot_rows(int64_t rows, int64_t width, const float* x, const float* row, int64_t stride, float* out);
void dot_rows(int64_t rows, int64_t width, const double* x, const double* row, int64_t stride, double* out);

/// sum += weights[i] row i, over the rows.
void add_rows(int64_t rows, int64_t width, const float* weights, const float* row, int64_t stride, float* sum);
void add_rows(int64_t rows, int64_t width, const double* weights, const double* row, int64_t stride, double* sum);

bool rows_finite(int64_t rows, int64_t width, const float* row, int64_t stride);
bool rows_finite(int64_t rows, int64_t width, const double* row, int64_t stride);

}  // namespace carousel::kernels
