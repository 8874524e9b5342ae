#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/blas_check.h>
#include <carousel/tensor/kernels/blocked_product.h>
#include <carousel/tensor/kernels/few_rows.h>
#include <carousel/tensor/kernels/gemm.h>
#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/product.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

constexpr int64_t least_large_product = 4 * 65536;  // multiplications; OpenBLAS uses one thread below
constexpr int64_t most_few_rows = 4;
constexpr int64_t least_rows_worth_a_layout = 16;  // of small products: laying B out costs as much as some rows

// Whether blocked_product beats BLAS.
bool prefers_own_product(int64_t m, int64_t n, int64_t k) {
#ifdef CAROUSEL_HAVE_BLAS
  const bool has_wide_registers = PackedBlock<float>::panel_width() >= 32;
  return has_wide_registers && (m >= least_rows_worth_a_layout || is_large_product(m, n, k));
#else
  return is_large_product(m, n, k);
#endif
}

template <class T>
void blas_product(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b, const T* bias, T* c,
                  Into into) {
  for (int64_t i = 0; i < m && bias != nullptr; ++i) std::copy_n(bias, n, c + i * n);
  const bool adds = into == Into::accumulate || bias != nullptr;
  gemm<T>(a.transposed, b.transposed, m, n, k, 1, a.data, a.ld, b.data, b.ld, adds ? 1 : 0, c, n);
}

}  // namespace

bool is_large_product(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > double{least_large_product};
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, const Factor<T>& a, const Factor<T>& b, const T* bias, T* c, Into into) {
  if (m <= most_few_rows && !a.transposed && b.transposed && into == Into::overwrite) {
    few_rows_product(m, n, k, a.data, a.ld, b.data, b.ld, bias, c, n);
  } else if (prefers_own_product(m, n, k)) {
    blocked_product(m, n, k, a, b, bias, c, n, into);
  } else {
    blas_product(m, n, k, a, b, bias, c, into);
  }
}

template <class T>
void product_batch(int64_t m, int64_t n, int64_t k, const Factor<T>& a_layout, std::span<const T* const> a,
                   const Factor<T>& b_layout, std::span<const T* const> b, T* c) {
  const auto count = static_cast<int64_t>(a.size());
  const auto products = [&](const auto& one_product, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      one_product(m, n, k, Factor<T>{a[i], a_layout.ld, a_layout.transposed},
                  Factor<T>{b[i], b_layout.ld, b_layout.transposed}, nullptr, c + i * m * n, Into::overwrite);
    }
  };
  if (count == 1 || is_large_product(m, n, k)) return products(product<T>, 0, count);
  check_blas_once();  // here, because an exception must not leave a parallel region
  const SerialBlas serial;
  parallel_ranges(count, 1 + least_large_product / (1 + m * n * k),
                  [&](int64_t begin, int64_t end) { products(blas_product<T>, begin, end); });
}

#define CAROUSEL_PRODUCT(T)                                                                                 \
  template void product(int64_t, int64_t, int64_t, const Factor<T>&, const Factor<T>&, const T*, T*, Into); \
  template void product_batch(int64_t, int64_t, int64_t, const Factor<T>&, std::span<const T* const>,       \
                              const Factor<T>&, std::span<const T* const>, T*);
CAROUSEL_PRODUCT(float)
CAROUSEL_PRODUCT(double)
#undef CAROUSEL_PRODUCT

}  // namespace carousel::kernels
