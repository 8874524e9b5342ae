#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/blas_check.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/kernels/product.h>

#include <algorithm>
#include <limits>

#ifdef CAROUSEL_HAVE_BLAS
#include <cblas.h>
#endif

namespace carousel::kernels {
namespace {

constexpr int64_t piece_limit = int64_t{1} << 30;  // sizes that BLAS's 32-bit integers surely hold
constexpr int64_t largest_ld = std::numeric_limits<int32_t>::max();

#ifdef CAROUSEL_HAVE_BLAS
CBLAS_TRANSPOSE transposition(bool trans) { return trans ? CblasTrans : CblasNoTrans; }

void call_blas(bool trans_a, bool trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
               int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, transposition(trans_a), transposition(trans_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

void call_blas(bool trans_a, bool trans_b, int m, int n, int k, double alpha, const double* a, int lda, const double* b,
               int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, transposition(trans_a), transposition(trans_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}
#else
template <class T>
void call_blas(bool trans_a, bool trans_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb,
               T beta, T* c, int ldc) {
  gemm_plain(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#endif

}  // namespace

template <class T>
void gemm_plain(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
    for (int64_t p = 0; p < k; ++p) {
      const T factor = alpha * (trans_a ? a[p * lda + i] : a[i * lda + p]);
      for (int64_t j = 0; j < n; ++j) row[j] += factor * (trans_b ? b[j * ldb + p] : b[p * ldb + j]);
    }
  }
}

template <class T>
void gemm_in_pieces(int64_t limit, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
                    int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  const BlasThreads threads(is_large_product(m, n, k));
  for (int64_t i = 0; i < m; i += limit) {
    for (int64_t j = 0; j < n; j += limit) {
      for (int64_t p = 0; p < k; p += limit) {
        call_blas(trans_a, trans_b, static_cast<int>(std::min(limit, m - i)), static_cast<int>(std::min(limit, n - j)),
                  static_cast<int>(std::min(limit, k - p)), alpha, a + (trans_a ? p * lda + i : i * lda + p),
                  static_cast<int>(lda), b + (trans_b ? j * ldb + p : p * ldb + j), static_cast<int>(ldb),
                  p == 0 ? beta : T(1), c + i * ldc + j, static_cast<int>(ldc));
      }
    }
  }
}

template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
          int64_t ldb, T beta, T* c, int64_t ldc) {
  check_blas_once();
  if (k == 0 || std::max({lda, ldb, ldc}) > largest_ld) {
    gemm_plain(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  } else {
    gemm_in_pieces(piece_limit, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
}

#define CAROUSEL_GEMM(T)                                                                                              \
  template void gemm(bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*, int64_t); \
  template void gemm_plain(bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*,     \
                           int64_t);                                                                                  \
  template void gemm_in_pieces(int64_t, bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*,        \
                               int64_t, T, T*, int64_t);
CAROUSEL_GEMM(float)
CAROUSEL_GEMM(double)
#undef CAROUSEL_GEMM

}  // namespace carousel::kernels
