#include <carousel/tensor/kernels/few_rows.h>
#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/parallel.h>

#ifndef CAROUSEL_FEW_ROWS  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_FEW_ROWS
namespace carousel::kernels {

// Columns of a tile: four sums at a time hide the latency of a multiply-add, for one row as for two.
constexpr int columns_at_once = 4;

template <class T>
struct DotProducts {
  int64_t m, k;
  const T* a;
  int64_t a_stride;
  const T* w;
  int64_t w_stride;
  const T* bias;  // null: none
  T* c;
  int64_t c_stride;
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/few_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

constexpr int rows_at_once = 2;  // with their columns as many as sixteen registers hold

/// The dot products of rows [row, row + Rows) of A with rows [column, column + Columns) of W.
template <int Rows, int Columns, class T>
HWY_INLINE void dot_tile(const DotProducts<T>& p, int64_t row, int64_t column) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT a = p.a + row * p.a_stride;
  const T* HWY_RESTRICT w = p.w + column * p.w_stride;
  V sum[Rows][Columns];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) sum[r][j] = hn::Zero(d);
  }
  const auto add = [&](int64_t l, auto access) HWY_ATTR {
    V x[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) x[r] = access.load(d, a + r * p.a_stride + l);
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      const V weight = access.load(d, w + j * p.w_stride + l);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sum[r][j] = hn::MulAdd(x[r], weight, sum[r][j]);
    }
  };
  int64_t l = 0;
  for (; l + lanes <= p.k; l += lanes) add(l, WholeVector());
  if (l < p.k) add(l, FirstLanes{static_cast<size_t>(p.k - l)});
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) {
      const T bias = p.bias == nullptr ? T{0} : p.bias[column + j];
      p.c[(row + r) * p.c_stride + column + j] = hn::GetLane(hn::SumOfLanes(d, sum[r][j])) + bias;
    }
  }
}

template <int Columns, class T>
HWY_INLINE void dot_columns(const DotProducts<T>& p, int64_t column) {
  int64_t row = 0;
  for (; row + rows_at_once <= p.m; row += rows_at_once) dot_tile<rows_at_once, Columns>(p, row, column);
  if (row < p.m) dot_tile<1, Columns>(p, row, column);
}

template <class T>
void dot_range(const DotProducts<T>& p, int64_t begin, int64_t end) {
  int64_t column = begin;
  for (; column + columns_at_once <= end; column += columns_at_once) dot_columns<columns_at_once>(p, column);
  for (; column < end; ++column) dot_columns<1>(p, column);
}

void dot_range_float(const DotProducts<float>& p, int64_t begin, int64_t end) { dot_range(p, begin, end); }
void dot_range_double(const DotProducts<double>& p, int64_t begin, int64_t end) { dot_range(p, begin, end); }

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {
namespace {

HWY_EXPORT(dot_range_float);
HWY_EXPORT(dot_range_double);

void dot_products(const DotProducts<float>& p, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(dot_range_float)(p, begin, end);
}
void dot_products(const DotProducts<double>& p, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(dot_range_double)(p, begin, end);
}

}  // namespace

template <class T>
void few_rows_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_stride, const T* w, int64_t w_stride,
                      const T* bias, T* c, int64_t c_stride) {
  constexpr int64_t products_of_a_range = 1 << 17;  // some microseconds
  const int64_t columns = std::max<int64_t>(products_of_a_range / (1 + m * k) / columns_at_once, 1) * columns_at_once;
  const DotProducts<T> p{m, k, a, a_stride, w, w_stride, bias, c, c_stride};
  parallel_ranges(n, columns, [&](int64_t begin, int64_t end) { dot_products(p, begin, end); });
}

template void few_rows_product(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, const float*,
                               float*, int64_t);
template void few_rows_product(int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, const double*,
                               double*, int64_t);

}  // namespace carousel::kernels
#endif  // HWY_ONCE
