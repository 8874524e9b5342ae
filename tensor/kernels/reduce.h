#pragma once

#include <cstdint>

/// Reductions along one axis: sum, mean, max, min, the position of an extreme.
///
/// Numbers are taken in fixed blocks of rows and columns, and the blocks' results joined pairwise, so that the thread
/// count changes nothing. float and double are added in double: relative error of a float sum at most 1e-7 of the sum
/// of magnitudes. Parallel over results and, for long reductions, over blocks. T is float, double or int64_t (mean:
/// float or double); int64 sums wrap around.
namespace carousel::kernels {

/// x is [outer, inner, n] with these strides in elements (any, also 0 or negative), the result row-major
/// [outer, inner]. Fast when n is contiguous, and when `inner` is (sums over columns).
struct ReduceLayout {
  int64_t outer = 1, inner = 1, n = 0;
  int64_t outer_stride = 0, inner_stride = 0, stride = 1;
};

template <class T>
void sum(const ReduceLayout& layout, const T* x, T* out);  ///< 0 when n = 0
template <class T>
void mean(const ReduceLayout& layout, const T* x, T* out);  ///< NaN when n = 0
template <class T>
void max(const ReduceLayout& layout, const T* x, T* out);  ///< NaN wins; -inf (the least integer) when n = 0
template <class T>
void min(const ReduceLayout& layout, const T* x, T* out);  ///< NaN wins; +inf (the largest integer) when n = 0

/// The first position of each `value` along n, NaN matching NaN; every value must be there.
template <class T>
void find_first(const ReduceLayout& layout, const T* x, const T* value, int64_t* out);

}  // namespace carousel::kernels
