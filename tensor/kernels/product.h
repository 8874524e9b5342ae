#pragma once

#include <carousel/tensor/kernels/factor.h>

#include <span>

/// Matrix products, by whatever is fastest for their sizes.
namespace carousel::kernels {

/// Whether m n k multiplications are worth several threads. Smaller products use one.
bool is_large_product(int64_t m, int64_t n, int64_t k);

/// C [m, n] = A [m, k] B [k, n] + bias, C row-major without gaps, `bias` [n] added to each row unless it is null; or
/// C += A B, with no bias.
///
/// A few rows times the transpose of what is stored: few_rows.h. What has many rows, or is large, where registers hold
/// 512 bits, and all large ones in a build without BLAS: blocked_product.h, which was measured as fast as BLAS's own
/// kernels for such registers and twice as fast as those for 256 bits, which is what older versions of OpenBLAS must
/// use on newer processors. All others: gemm.h. The first that goes to BLAS checks it and throws ValueError when it is
/// wrong.
template <class T>
void product(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b, const T* bias, T* c,
             Into into = Into::overwrite);

/// C_i = A_i B_i for every i, one after another in `c`: the factors' layouts with the data of `a` and `b`. Many small
/// products run in parallel in BLAS, each on one thread; large ones one after another, each on all threads.
template <class T>
void product_batch(int64_t m, int64_t n, int64_t k, const Factor<T>& a_layout, std::span<const T* const> a,
                   const Factor<T>& b_layout, std::span<const T* const> b, T* c);

}  // namespace carousel::kernels
