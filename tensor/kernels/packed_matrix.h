#pragma once

#include <cstdint>
#include <memory>

namespace carousel::kernels {

/// Whether a product replaces what is there or adds to it.
enum class Into { overwrite, accumulate };

/// A weight matrix W [k, n] laid out once for many products C (+)= A W with few rows: the product of every recurrence.
///
/// Layout: panels of as many columns as two SIMD registers hold (32 floats with AVX-512), each k rows deep and
/// contiguous, the last one filled up with zeros. C is computed in tiles of up to 8 rows by one panel that stay in
/// registers for the whole sum, a single row in tiles of four panels.
///
/// `multiply` runs on the calling thread: a recurrence gives each thread rows of its own. An element of C is summed
/// over k in order, whatever tile its row falls into, so that a row's result depends neither on its neighbours nor on
/// the thread count. |error| <= (k + 1) eps sum_l |a_l w_l|, plus one rounding of the sum with C; eps is 2^-24 in
/// float, 2^-53 in double. NaN and infinity spread as in the plain product.
template <class T>
class PackedMatrix {
 public:
  /// W(l, j) is w[l * row_stride + j * column_stride]; so a transpose costs nothing more.
  PackedMatrix(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride);

  /// Room for any matrix of at most k rows and n columns: `pack` one before the first product.
  PackedMatrix(int64_t k, int64_t n);
  /// Puts another matrix in, for which there must be room. Allocates nothing.
  void pack(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride);

  /// C [rows, n] (+)= A [rows, k] W; row r of A begins at a + r * a_stride, of C at c + r * c_stride.
  void multiply(int64_t rows, const T* a, int64_t a_stride, T* c, int64_t c_stride, Into into) const;

 private:
  int64_t k_, n_, width_;  // width_: columns of a panel
  std::unique_ptr<T[]> memory_;
  T* panels_;  // in memory_, aligned to a cache line
};

namespace plain {
/// The same from W itself, row-major with strides as above.
template <class T>
void multiply(int64_t rows, int64_t k, int64_t n, const T* a, int64_t a_stride, const T* w, int64_t row_stride,
              int64_t column_stride, T* c, int64_t c_stride, Into into);
}  // namespace plain

}  // namespace carousel::kernels
