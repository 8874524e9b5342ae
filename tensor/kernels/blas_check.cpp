#include <carousel/tensor/error.h>
#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/blas_check.h>
#include <carousel/tensor/kernels/gemm.h>

#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

namespace carousel::kernels {
namespace {

/// Integers in [-4, 4] from a small congruential generator.
template <class T>
std::vector<T> small_integers(int64_t count, uint32_t seed) {
  std::vector<T> values(count);
  for (T& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<T>(static_cast<int>((seed >> 16) % 9) - 4);
  }
  return values;
}

template <class T>
void run_in_blas(bool trans_a, bool trans_b, int64_t rows, int64_t columns, int64_t inner, T alpha, const T* a,
                 int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  gemm_in_pieces(std::numeric_limits<int32_t>::max(), trans_a, trans_b, rows, columns, inner, alpha, a, lda, b, ldb,
                 beta, c, ldc);
}

/// Compares small products with plain ones, for every pair of transpositions. Odd sizes, so that the kernels' edges are
/// used too.
template <class T>
bool small_products_are_right(Gemm<T> gemm) {
  constexpr int64_t m = 35, n = 37, k = 33;
  const std::vector<T> a = small_integers<T>(m * k, 1), b = small_integers<T>(k * n, 2);
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      std::vector<T> got(m * n, std::numeric_limits<T>::quiet_NaN()), expected(m * n);
      const int64_t lda = trans_a ? m : k, ldb = trans_b ? k : n;
      gemm(trans_a, trans_b, m, n, k, 1, a.data(), lda, b.data(), ldb, 0, got.data(), n);
      gemm_plain<T>(trans_a, trans_b, m, n, k, 1, a.data(), lda, b.data(), ldb, 0, expected.data(), n);
      if (got != expected) return false;
    }
  }
  return true;
}

/// M v for a square row-major M.
template <class T>
std::vector<double> matrix_times_vector(const std::vector<T>& matrix, const std::vector<double>& v) {
  std::vector<double> result(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    for (size_t j = 0; j < v.size(); ++j) result[i] += static_cast<double>(matrix[i * v.size() + j]) * v[j];
  }
  return result;
}

/// One product that is large enough for the blocked and the threaded code. A plain one would take a millisecond:
/// (A B) v = A (B v) tells as much, since every wrong number changes the left side.
template <class T>
bool large_product_is_right(Gemm<T> gemm) {
  constexpr int64_t n = 128;
  const std::vector<T> a = small_integers<T>(n * n, 3), b = small_integers<T>(n * n, 4);
  std::vector<T> c(n * n, std::numeric_limits<T>::quiet_NaN());
  gemm(false, false, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  std::vector<double> v(n);
  std::iota(v.begin(), v.end(), 1);
  return matrix_times_vector(c, v) == matrix_times_vector(a, matrix_times_vector(b, v));
}

}  // namespace

template <class T>
bool product_is_right(Gemm<T> gemm) {
  return small_products_are_right(gemm) && large_product_is_right(gemm);
}
template bool product_is_right(Gemm<float>);
template bool product_is_right(Gemm<double>);

void check_products(Gemm<float> gemm_float, Gemm<double> gemm_double) {
  const char* const wrong = !product_is_right(gemm_float) ? "float32" : !product_is_right(gemm_double) ? "float64" : "";
  check<ValueError>(*wrong == '\0', "check_blas",
                    "BLAS products must equal plain ones: got wrong {} numbers from {}, kernel {}; another kernel may "
                    "be right (set OPENBLAS_CORETYPE, for instance to Haswell)",
                    wrong, blas_name(), blas_kernel());
}

void check_blas() { check_products(run_in_blas<float>, run_in_blas<double>); }

void check_blas_once() {
  static std::atomic<bool> is_checked{false};
  if (is_checked.load(std::memory_order_relaxed)) return;
  check_blas();  // two threads may both check; that does no harm
  is_checked.store(true, std::memory_order_relaxed);
}

}  // namespace carousel::kernels
