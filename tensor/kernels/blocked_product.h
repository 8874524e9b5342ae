#pragma once

#include <carousel/tensor/kernels/factor.h>

namespace carousel::kernels {

/// C [m, n] = A [m, k] B [k, n] + bias, C row-major with rows `c_stride` apart, `bias` [n] for each row or null; or
/// C += A B, with no bias.
///
/// B is laid out as a PackedBlock, as much of it at a time as the second-level cache holds; so is a transposed A, a few
/// rows at a time. Threads lay B out together and then share the rows of C. An element is summed over k in order, in
/// stretches of 256 that are then added up: neither the thread count nor the place of its row changes it.
/// |error| <= (k + 2) eps (|bias| or |C| + sum_l |a_l b_l|); eps is 2^-24 in float, 2^-53 in double. NaN and infinity
/// spread as in the plain product. Throws std::bad_alloc where there is no memory for the layouts, which each calling
/// thread keeps.
template <class T>
void blocked_product(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b, const T* bias, T* c,
                     int64_t c_stride, Into into = Into::overwrite);

}  // namespace carousel::kernels
