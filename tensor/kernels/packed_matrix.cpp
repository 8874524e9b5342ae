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
  int64_t panel_size;  // from one panel to the next
  const T* a;
  int64_t a_row_stride, a_column_stride;
  T* c;
  int64_t c_stride;
  Into into;
  const T* bias;  // null: none
};

/// The columns of W that one panel holds; strides as in PackedMatrix.
template <class T>
struct PanelSource {
  int64_t k, columns;
  const T* w;
  int64_t row_stride, column_stride;
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

/// to[l][j] = from[j][l] for `strip_rows` l and as many j as a vector holds.
#if HWY_TARGET == HWY_SCALAR
constexpr int64_t strip_rows = 1;
void transpose_strip(const float* from, int64_t, float* to, int64_t) { *to = *from; }
#else
constexpr int64_t strip_rows = 4;

/// Four numbers each from as many places as fill a vector.
template <class D>
HWY_INLINE hn::Vec<D> load_fours(D d, const float* from, int64_t distance) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    constexpr auto fours = static_cast<int64_t>(hn::MaxLanes(D()) / 8);  // in a half
    return hn::Combine(d, load_fours(half, from + fours * distance, distance), load_fours(half, from, distance));
  }
}

HWY_INLINE void transpose_strip(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const hn::ScalableTag<float> d;
  const int64_t distance = 4 * from_stride;
  const auto a = load_fours(d, from, distance), b = load_fours(d, from + from_stride, distance),
             c = load_fours(d, from + 2 * from_stride, distance), e = load_fours(d, from + 3 * from_stride, distance);
  const auto ac_low = hn::InterleaveLower(d, a, c), be_low = hn::InterleaveLower(d, b, e);
  const auto ac_high = hn::InterleaveUpper(d, a, c), be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac_low, be_low), d, to);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, ac_high, be_high), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, to + 3 * to_stride);
}

#endif

void transpose_strip(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
  const auto columns = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  for (int64_t l = 0; l < strip_rows; ++l) {
    for (int64_t j = 0; j < columns; ++j) to[l * to_stride + j] = from[l + j * from_stride];
  }
}

int64_t panel_width_float() { return panel_width<float>(); }
int64_t panel_width_double() { return panel_width<double>(); }

/// A whole panel of a W whose rows have no gaps.
template <class T>
void copy_rows(const PanelSource<T>& s, T* HWY_RESTRICT panel) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT row = s.w;
  for (int64_t l = 0; l < s.k; ++l, row += s.row_stride) {
    for (int v = 0; v < vectors_per_panel; ++v, panel += lanes) hn::Store(hn::LoadU(d, row + v * lanes), d, panel);
  }
}

/// W's part that a panel holds, and where: see lay_out.
template <class T>
void lay_out_panel(const PanelSource<T>& s, int64_t width, T* HWY_RESTRICT panel) {
  if (s.column_stride == 1 && s.columns == width) return copy_rows(s, panel);
  if (s.columns < width) {
    for (int64_t l = 0; l < s.k; ++l) std::fill(panel + l * width + s.columns, panel + (l + 1) * width, T{0});
  }
  if (s.column_stride == 1) {
    for (int64_t l = 0; l < s.k; ++l) std::copy_n(s.w + l * s.row_stride, s.columns, panel + l * width);
    return;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t whole_rows = s.row_stride == 1 ? s.k / strip_rows * strip_rows : 0;
  const int64_t whole_columns = s.columns / lanes * lanes;
  const auto plain = [&](int64_t row, int64_t last_row, int64_t column) {
    for (int64_t l = row; l < last_row; ++l) {
      for (int64_t j = column; j < s.columns; ++j) panel[l * width + j] = s.w[l * s.row_stride + j * s.column_stride];
    }
  };
  constexpr int64_t stretch = 16;  // so that each line of W is read once and the panel's lines stay near
  for (int64_t begin = 0; begin < whole_rows; begin += stretch) {
    const int64_t end = std::min(whole_rows, begin + stretch);
    for (int64_t j = 0; j < whole_columns; j += lanes) {
      for (int64_t l = begin; l < end; l += strip_rows) {
        transpose_strip(s.w + l + j * s.column_stride, s.column_stride, panel + l * width + j, width);
      }
    }
    plain(begin, end, whole_columns);
  }
  plain(whole_rows, s.k, 0);
}

/// Writes a tile of sums, which begins at row 0 and column 0 of `c`: what is added to them there, if anything, is
/// `start`, with rows `start_stride` apart. `columns` of them are within C.
template <int Rows, int vectors, class D, class T>
HWY_INLINE void finish(D d, const hn::Vec<D> (&sum)[Rows][vectors], T* c, int64_t c_stride, const T* start,
                       int64_t start_stride, int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns >= vectors * lanes) {
    if (start == nullptr) {
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) hn::StoreU(sum[r][v], d, c + r * c_stride + v * lanes);
      }
      return;
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const auto before = hn::LoadU(d, start + r * start_stride + v * lanes);
        hn::StoreU(hn::Add(before, sum[r][v]), d, c + r * c_stride + v * lanes);
      }
    }
    return;
  }
  HWY_ALIGN T whole[Rows][vectors * hn::MaxLanes(d)];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) hn::Store(sum[r][v], d, whole[r] + v * lanes);
  }
  for (int r = 0; r < Rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      c[r * c_stride + j] = start == nullptr ? whole[r][j] : start[r * start_stride + j] + whole[r][j];
    }
  }
}

/// Rows [row, row + Rows) by the first `vectors` registers of columns from number `panel` on: one, or whole panels.
template <int Rows, int vectors, class T>
HWY_NOINLINE void multiply_tile(const Product<T>& p, int64_t row, int64_t panel) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = vectors_per_panel * lanes;
  const T* HWY_RESTRICT a = p.a + row * p.a_row_stride;
  const T* HWY_RESTRICT w = p.panels + panel * p.panel_size;

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
      weights[v] = hn::Load(d, w + (v / vectors_per_panel) * p.panel_size + l * width + v % vectors_per_panel * lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const V x = hn::Set(d, a[r * p.a_row_stride + l * p.a_column_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(x, weights[v], sum[r][v]);
    }
  }
  const int64_t column = panel * width;
  T* const c = p.c + row * p.c_stride + column;
  const bool adds = p.into == Into::accumulate;
  const T* const start = adds ? c : p.bias == nullptr ? nullptr : p.bias + column;
  finish<Rows, vectors>(d, sum, c, p.c_stride, start, adds ? p.c_stride : 0, p.n - column);
}

/// The tile with `rows` rows, 1 <= rows <= Rows.
template <int Rows, int vectors, class T>
HWY_INLINE void multiply_rows(const Product<T>& p, int64_t rows, int64_t row, int64_t panel) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return multiply_rows<Rows - 1, vectors>(p, rows, row, panel);
  }
  multiply_tile<Rows, vectors>(p, row, panel);
}

/// All rows by one panel.
template <int vectors, class T>
HWY_INLINE void multiply_panel(const Product<T>& p, int64_t rows, int64_t panel) {
  int64_t tiles = (rows + max_tile_rows - 1) / max_tile_rows;  // as even as can be: 25 rows are 7 + 6 + 6 + 6
  for (int64_t row = 0; tiles > 0; --tiles) {
    const int64_t tile_rows = (rows - row + tiles - 1) / tiles;
    multiply_rows<max_tile_rows, vectors>(p, tile_rows, row, panel);
    row += tile_rows;
  }
}

template <class T>
void multiply_all(const Product<T>& p, int64_t rows) {
  const int64_t width = panel_width<T>(), panels = (p.n + width - 1) / width;
  int64_t panel = 0;
  if (rows == 1) {
    for (; panel + panels_per_single_row <= panels; panel += panels_per_single_row) {
      multiply_tile<1, panels_per_single_row * vectors_per_panel>(p, 0, panel);
    }
  }
  const bool half_is_empty = p.n % width > 0 && p.n % width <= width / vectors_per_panel;
  for (; panel < panels - (half_is_empty ? 1 : 0); ++panel) multiply_panel<vectors_per_panel>(p, rows, panel);
  if (panel < panels) multiply_panel<1>(p, rows, panel);
}

void lay_out_float(const PanelSource<float>& s, int64_t width, float* panel) { lay_out_panel(s, width, panel); }
void lay_out_double(const PanelSource<double>& s, int64_t width, double* panel) { lay_out_panel(s, width, panel); }
void multiply_float(const Product<float>& p, int64_t rows) { multiply_all(p, rows); }
void multiply_double(const Product<double>& p, int64_t rows) { multiply_all(p, rows); }

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(panel_width_float);
HWY_EXPORT(panel_width_double);
HWY_EXPORT(lay_out_float);
HWY_EXPORT(lay_out_double);
HWY_EXPORT(multiply_float);
HWY_EXPORT(multiply_double);

namespace {

int64_t panel_width(float) { return HWY_DYNAMIC_DISPATCH(panel_width_float)(); }
int64_t panel_width(double) { return HWY_DYNAMIC_DISPATCH(panel_width_double)(); }
void multiply_packed(const Product<float>& p, int64_t rows) { HWY_DYNAMIC_DISPATCH(multiply_float)(p, rows); }
void multiply_packed(const Product<double>& p, int64_t rows) { HWY_DYNAMIC_DISPATCH(multiply_double)(p, rows); }

constexpr size_t cache_line = 64;

void lay_out(const PanelSource<float>& s, int64_t width, float* panel) {
  HWY_DYNAMIC_DISPATCH(lay_out_float)(s, width, panel);
}
void lay_out(const PanelSource<double>& s, int64_t width, double* panel) {
  HWY_DYNAMIC_DISPATCH(lay_out_double)(s, width, panel);
}

}  // namespace

template <class T>
int64_t PackedBlock<T>::panel_width() {
  return kernels::panel_width(T{});
}

template <class T>
int64_t PackedBlock<T>::memory_size(int64_t k, int64_t n) {
  const int64_t width = panel_width();
  return (n + width - 1) / width * width * k;
}

template <class T>
void PackedBlock<T>::pack(int64_t panel, const T* w, int64_t row_stride, int64_t column_stride) const {
  const int64_t width = panel_width(), first = panel * width;
  lay_out({k_, std::min(width, n_ - first), w + first * column_stride, row_stride, column_stride}, width,
          panels_ + first * k_);
}

template <class T>
void PackedBlock<T>::multiply(int64_t rows, Rows a, T* c, int64_t c_stride, Into into, const T* bias) const {
  multiply_packed({k_, n_, panels_, panel_size_, a.data, a.row_stride, a.column_stride, c, c_stride, into, bias}, rows);
}

template <class T>
void PackedBlock<T>::multiply(Part part, int64_t rows, Rows a, T* c, int64_t c_stride, Into into) const {
  const T* const first = panels_ + part.first_row * panel_width();
  multiply_packed(
      {part.rows, part.columns, first, panel_size_, a.data, a.row_stride, a.column_stride, c, c_stride, into, nullptr},
      rows);
}

template <class T>
PackedMatrix<T>::PackedMatrix(int64_t k, int64_t n) : block_(k, n, nullptr) {
  size_t bytes = static_cast<size_t>(PackedBlock<T>::memory_size(k, n)) * sizeof(T) + cache_line;
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
  block_ = PackedBlock<T>(k, n, panels_);
  block_.pack(w, row_stride, column_stride);
}

template class PackedBlock<float>;
template class PackedBlock<double>;
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
