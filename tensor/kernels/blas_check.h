#pragma once

#include <cstdint>

/// Whether BLAS can be trusted: old OpenBLAS kernels are wrong on some new processors.
namespace carousel::kernels {

template <class T>
using Gemm = void (*)(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                      const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

/// Whether `gemm` is right: small products for every pair of transpositions, and one of 128 x 128 matrices, which takes
/// the blocked code and several threads. The factors are small integers, so that every right answer is exact and
/// nothing needs a tolerance.
template <class T>
bool product_is_right(Gemm<T> gemm);

/// Throws ValueError, naming the BLAS and its kernel, unless both products are right.
void check_products(Gemm<float> gemm_float, Gemm<double> gemm_double);

/// check_products of the BLAS in use.
void check_blas();

/// The same for the first call of a process; later ones cost nothing. A failed check is repeated, so that every
/// product fails.
void check_blas_once();

}  // namespace carousel::kernels
