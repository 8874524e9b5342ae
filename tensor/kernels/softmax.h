#pragma once

#include <cstdint>

/// Softmax and its logarithms of `rows` contiguous rows of n numbers, shifted by the row's maximum M:
///   logsumexp = M + log sum exp(x - M),  softmax = exp(x - M) / sum exp(x - M),
///   log_softmax = (x - M) - log sum exp(x - M), which keeps its digits however large M is.
/// A row of nothing but -inf gives -inf, zeros and -inf; one with +inf gives +inf, and NaN where +inf stands in the
/// other two; NaN spreads over its row. Parallel over rows, sums in double; the thread count changes nothing. Relative
/// error of softmax: at most 8 + |x - M| units in the last place, from rounding x - M. y may be x.
namespace carousel::kernels {

template <class T>
void logsumexp(int64_t rows, int64_t n, const T* x, T* out);
template <class T>
void softmax(int64_t rows, int64_t n, const T* x, T* y);
template <class T>
void log_softmax(int64_t rows, int64_t n, const T* x, T* y);

}  // namespace carousel::kernels
