#pragma once

#include <cstdint>

/// The seam to BLAS; others call product.h. Matrices are row-major; `ld` is the distance between rows in memory.
namespace carousel::kernels {

/// C <- alpha op(A) op(B) + beta C, where op(A) is [m, k], op(B) [k, n], C [m, n], and op transposes what is stored
/// when `trans` is set. beta = 0 overwrites C whatever it held. Sizes are not limited to BLAS's 31 bits. Parallel in
/// BLAS; with k unsplit, so that the thread count changes at most the last bits. T is float or double. The first call
/// of a process checks BLAS (see blas_check.h) and throws ValueError when it is wrong.
template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, T beta, T* c, int64_t ldc);

/// The same by three plain loops: for builds without BLAS, for what BLAS cannot express, and for tests.
template <class T>
void gemm_plain(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

/// gemm in pieces of at most `limit` along every size.
template <class T>
void gemm_in_pieces(int64_t limit, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                    int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

}  // namespace carousel::kernels
