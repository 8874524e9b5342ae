#pragma once

#include <carousel/tensor/kernels/factor.h>

#include <memory>

namespace carousel::kernels {

/// A matrix W [k, n] laid out for products C (+)= A W, in memory that belongs to somebody else.
///
/// Layout: panels of as many columns as two SIMD registers hold (32 floats with AVX-512), each k rows deep and
/// contiguous, the last one filled up with zeros. C is computed in tiles of up to 8 rows by one panel that stay in
/// registers for the whole sum, a single row in tiles of four panels.
///
/// Everything runs on the calling thread: threads share a product by its panels or its rows. An element of C is summed
/// over k in order, whatever tile its row falls into, so that a row's result depends neither on its neighbours nor on
/// the thread count. |error| <= (k + 1) eps sum_l |a_l w_l|, plus one rounding of the sum with C; eps is 2^-24 in
/// float, 2^-53 in double. NaN and infinity spread as in the plain product.
template <class T>
class PackedBlock {
 public:
  /// `panels` has room for `memory_size(k, n)` numbers and is aligned to a cache line.
  PackedBlock(int64_t k, int64_t n, T* panels) : k_(k), n_(n), panel_size_(k * panel_width()), panels_(panels) {}
  static int64_t memory_size(int64_t k, int64_t n);

  /// Columns of a panel: two registers.
  static int64_t panel_width();
  int64_t panel_count() const { return (n_ + panel_width() - 1) / panel_width(); }

  /// Lays one panel of W out: W(l, j) is w[l * row_stride + j * column_stride], so that a transpose costs nothing more.
  void pack(int64_t panel, const T* w, int64_t row_stride, int64_t column_stride) const;
  /// Lays all of them out.
  void pack(const T* w, int64_t row_stride, int64_t column_stride) const {
    for (int64_t panel = 0; panel < panel_count(); ++panel) pack(panel, w, row_stride, column_stride);
  }

  /// The left side of a product: A(r, l) is data[r * row_stride + l * column_stride].
  struct Rows {
    const T* data;
    int64_t row_stride, column_stride = 1;
  };
  /// C [rows, n] (+)= A [rows, k] W; row r of C begins at c + r * c_stride. Where C is overwritten, `bias` [n] is added
  /// to each of its rows unless it is null.
  void multiply(int64_t rows, Rows a, T* c, int64_t c_stride, Into into, const T* bias = nullptr) const;

  /// Rows [first_row, first_row + rows) and columns [0, columns) of W.
  struct Part {
    int64_t first_row, rows, columns;
  };
  /// The same with that part of W alone: A is [rows, part.rows], C [rows, part.columns].
  void multiply(Part part, int64_t rows, Rows a, T* c, int64_t c_stride, Into into) const;

 private:
  int64_t k_, n_, panel_size_;
  T* panels_;
};

/// The same with memory of its own: a weight matrix laid out once for many products with few rows, which are the
/// products of every recurrence.
template <class T>
class PackedMatrix {
 public:
  /// W(l, j) is w[l * row_stride + j * column_stride].
  PackedMatrix(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride);

  /// Room for any matrix of at most k rows and n columns: `pack` one before the first product.
  PackedMatrix(int64_t k, int64_t n);
  /// Puts another matrix in, for which there must be room. Allocates nothing.
  void pack(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride);

  /// C [rows, n] (+)= A [rows, k] W; row r of A begins at a + r * a_stride, of C at c + r * c_stride.
  void multiply(int64_t rows, const T* a, int64_t a_stride, T* c, int64_t c_stride, Into into) const {
    block_.multiply(rows, {a, a_stride}, c, c_stride, into);
  }

 private:
  std::unique_ptr<T[]> memory_;
  T* panels_;  // in memory_, aligned to a cache line
  PackedBlock<T> block_;
};

namespace plain {
/// The same from W itself, row-major with strides as above.
template <class T>
void multiply(int64_t rows, int64_t k, int64_t n, const T* a, int64_t a_stride, const T* w, int64_t row_stride,
              int64_t column_stride, T* c, int64_t c_stride, Into into);
}  // namespace plain

}  // namespace carousel::kernels
