#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/packed_matrix.h>

#include <algorithm>
#include <memory>

#ifndef CAROUSEL_PACKED_PRODUCT  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_PACKED_PRODUCT
namespace carousel::kernels {

/// Everything one product shares.
template <class T>
struct Product {
  int64_t k, n;
  const T* panels;
  const T* a;
  int64_t a_stride;
  T* c;
  int64_t c_stride;
  Into into;
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/packed_matrix.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

// One panel is two registers wide: eight rows of two sums hide the latency of two multiply-adds a cycle and leave
// room for the weights. Sixteen registers hold six rows, and what the fallback has is not known.
constexpr int vectors_per_panel = 2;
constexpr int panels_per_single_row = 4;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int max_tile_rows = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr int max_tile_rows = 6;
#else
constexpr int max_tile_rows = 4;
#endif

template <class T>
int64_t panel_width() {
  return vectors_per_panel * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

int64_t panel_width_float() { return panel_width<float>(); }
int64_t panel_width_double() { return panel_width<double>(); }

/// Writes one register of sums to columns [column, ..) of a row of C, as far as C has them.
template <class D, class T>
HWY_INLINE void finish(D d, hn::Vec<D> sum, const Product<T>& p, int64_t row, int64_t column) {
  T* const c = p.c + row * p.c_stride + column;
  const int64_t left = p.n - column;
  if (left >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(p.into == Into::accumulate ? hn::Add(hn::LoadU(d, c), sum) : sum, d, c);
  } else if (left > 0) {
    const auto count = static_cast<size_t>(left);
    store_first(p.into == Into::accumulate ? hn::Add(load_first(d, c, count), sum) : sum, d, c, count);
  }
}

/// Rows [row, row + Rows) by `Panels` panels from number `panel` on.
template <int Rows, int Panels, class T>
HWY_NOINLINE void multiply_tile(const Product<T>& p, int64_t row, int64_t panel) {
  constexpr int vectors = Panels * vectors_per_panel;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = vectors_per_panel * lanes;
  const T* HWY_RESTRICT a = p.a + row * p.a_stride;
  const T* HWY_RESTRICT w = p.panels + panel * p.k * width;

  V sum[Rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (int64_t l = 0; l < p.k; ++l) {
    V weights[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      weights[v] = hn::Load(d, w + (v / vectors_per_panel) * p.k * width + l * width + (v % vectors_per_panel) * lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const V x = hn::Set(d, a[r * p.a_stride + l]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(x, weights[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) finish(d, sum[r][v], p, row + r, panel * width + v * lanes);
  }
}

/// The tile with `rows` rows, 1 <= rows <= Rows.
template <int Rows, class T>
HWY_INLINE void multiply_rows(const Product<T>& p, int64_t rows, int64_t row, int64_t panel) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return multiply_rows<Rows - 1>(p, rows, row, panel);
  }
  multiply_tile<Rows, 1>(p, row, panel);
}

template <class T>
void multiply_all(const Product<T>& p, int64_t rows) {
  const int64_t width = panel_width<T>(), panels = (p.n + width - 1) / width;
  int64_t panel = 0;
  if (rows == 1) {
    for (; panel + panels_per_single_row <= panels; panel += panels_per_single_row) {
      multiply_tile<1, panels_per_single_row>(p, 0, panel);
    }
  }
  for (; panel < panels; ++panel) {
    int64_t tiles = (rows + max_tile_rows - 1) / max_tile_rows;  // as even as can be: 25 rows are 7 + 6 + 6 + 6
    for (int64_t row = 0; tiles > 0; --tiles) {
      const int64_t tile_rows = (rows - row + tiles - 1) / tiles;
      multiply_rows<max_tile_rows>(p, tile_rows, row, panel);
      row += tile_rows;
    }
  }
}

void multiply_float(const Product<float>& p, int64_t rows) { multiply_all(p, rows); }
void multiply_double(const Product<double>& p, int64_t rows) { multiply_all(p, rows); }

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(panel_width_float);
HWY_EXPORT(panel_width_double);
HWY_EXPORT(multiply_float);
HWY_EXPORT(multiply_double);

namespace {

int64_t panel_width(float) { return HWY_DYNAMIC_DISPATCH(panel_width_float)(); }
int64_t panel_width(double) { return HWY_DYNAMIC_DISPATCH(panel_width_double)(); }
void multiply_packed(const Product<float>& p, int64_t rows) { HWY_DYNAMIC_DISPATCH(multiply_float)(p, rows); }
void multiply_packed(const Product<double>& p, int64_t rows) { HWY_DYNAMIC_DISPATCH(multiply_double)(p, rows); }

constexpr size_t cache_line = 64;

template <class T>
void pack_panel(int64_t k, int64_t columns, int64_t width, const T* w, int64_t row_stride, int64_t column_stride,
                T* panel) {
  // Short stretches of rows, so that each line of a transposed W is read once and the panel's lines stay near.
  constexpr int64_t stretch = 16;
  for (int64_t begin = 0; begin < k; begin += stretch) {
    const int64_t end = std::min(k, begin + stretch);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t l = begin; l < end; ++l) panel[l * width + j] = w[l * row_stride + j * column_stride];
    }
    for (int64_t l = begin; l < end; ++l) std::fill(panel + l * width + columns, panel + (l + 1) * width, T{0});
  }
}

}  // namespace

template <class T>
PackedMatrix<T>::PackedMatrix(int64_t k, int64_t n) : k_(k), n_(n), width_(panel_width(T{})) {
  const int64_t panels = (n + width_ - 1) / width_;
  size_t bytes = static_cast<size_t>(panels * width_ * k) * sizeof(T) + cache_line;
  memory_.reset(new T[bytes / sizeof(T)]);  // not make_unique, which would clear it first
  void* aligned = memory_.get();
  panels_ = static_cast<T*>(std::align(cache_line, bytes - cache_line, aligned, bytes));
}

template <class T>
PackedMatrix<T>::PackedMatrix(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride)
    : PackedMatrix(k, n) {
  pack(k, n, w, row_stride, column_stride);
}

template <class T>
void PackedMatrix<T>::pack(int64_t k, int64_t n, const T* w, int64_t row_stride, int64_t column_stride) {
  k_ = k;
  n_ = n;
  for (int64_t first = 0; first < n; first += width_) {
    const int64_t columns = std::min(width_, n - first);
    pack_panel(k, columns, width_, w + first * column_stride, row_stride, column_stride, panels_ + first * k);
  }
}

template <class T>
void PackedMatrix<T>::multiply(int64_t rows, const T* a, int64_t a_stride, T* c, int64_t c_stride, Into into) const {
  multiply_packed(Product<T>{k_, n_, panels_, a, a_stride, c, c_stride, into}, rows);
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

namespace plain {

template <class T>
void multiply(int64_t rows, int64_t k, int64_t n, const T* a, int64_t a_stride, const T* w, int64_t row_stride,
              int64_t column_stride, T* c, int64_t c_stride, Into into) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a[r * a_stride + l] * w[l * row_stride + j * column_stride];
      T& to = c[r * c_stride + j];
      to = into == Into::accumulate ? to + sum : sum;
    }
  }
}

template void multiply(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, int64_t, float*,
                       int64_t, Into);
template void multiply(int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, int64_t, double*,
                       int64_t, Into);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
