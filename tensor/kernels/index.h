#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Reading and adding at given positions. Positions are valid; what is added at one place is added in the order of the
/// positions, so that the thread count changes nothing.
namespace carousel::kernels {

/// The first i with index[i] outside [0, size), or -1.
int64_t find_outside(int64_t count, const int64_t* index, int64_t size);

/// Row i of `out` <- row index[i] of `table`; rows of `row_bytes` contiguous bytes. Parallel over rows.
void take_rows(int64_t count, const int64_t* index, const std::byte* table, int64_t row_bytes, std::byte* out);

/// Row index[i] of `out` += row i of `source`. Parallel over columns. T is float, double or int64_t.
template <class T>
void add_rows(int64_t count, const int64_t* index, const T* source, int64_t width, T* out);

/// The elements of a row-major `index` tensor, and how a tensor that they pick from along `axis` is laid out.
struct PickLayout {
  int rank = 0;
  int axis = 0;
  std::array<int64_t, 8> sizes{};    // of index
  std::array<int64_t, 8> strides{};  // of the tensor picked from, in elements
};

/// out[i] <- the element of x that index[i] picks, out row-major. Parallel. T is any element type.
template <class T>
void gather(const PickLayout& layout, const int64_t* index, const T* x, T* out);

/// The element of x that index[i] picks += source[i], source row-major. One thread.
template <class T>
void scatter_add(const PickLayout& layout, const int64_t* index, const T* source, T* x);

}  // namespace carousel::kernels
