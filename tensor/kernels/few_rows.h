#pragma once

#include <cstdint>

namespace carousel::kernels {

/// C [m, n] = A [m, k] W^T + bias for a few rows and W [n, k]: every element a dot product of two rows, so that W is
/// read once and laid out never. Rows lie a_stride, w_stride and c_stride apart; `bias` [n] for each row or null.
///
/// Parallel over n. An element is summed in as many parts as a SIMD register has lanes, each in order, and does not
/// depend on its neighbours or the thread count. |error| <= (k + 2) eps (|bias| + sum_l |a_l w_l|); eps is 2^-24 in
/// float, 2^-53 in double. NaN and infinity spread as in the plain product.
template <class T>
void few_rows_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* w, int64_t w_stride,
                      const T* bias, T* c, int64_t c_stride);

}  // namespace carousel::kernels
