#include <carousel/tensor/kernels/index.h>
#include <carousel/tensor/kernels/parallel.h>

#include <cstring>

namespace carousel::kernels {
namespace {

/// Calls `body(i, offset)` for the elements begin <= i < end of an index tensor, where `offset` leads to the element
/// that index[i] picks.
template <class Body>
void for_each_pick(const PickLayout& l, const int64_t* index, int64_t begin, int64_t end, const Body& body) {
  std::array<int64_t, 8> at{};  // the place of element i, counted up like an odometer
  int64_t base = 0, rest = begin;
  const auto stride = [&](int axis) { return axis == l.axis ? 0 : l.strides[axis]; };
  for (int axis = l.rank - 1; axis >= 0; --axis) {
    at[axis] = rest % l.sizes[axis];
    rest /= l.sizes[axis];
    base += at[axis] * stride(axis);
  }
  for (int64_t i = begin; i < end; ++i) {
    body(i, base + index[i] * l.strides[l.axis]);
    for (int axis = l.rank - 1; axis >= 0; --axis) {
      base += stride(axis);
      if (++at[axis] < l.sizes[axis]) break;
      base -= at[axis] * stride(axis);
      at[axis] = 0;
    }
  }
}

int64_t count_of(const PickLayout& l) {
  int64_t count = 1;
  for (int axis = 0; axis < l.rank; ++axis) count *= l.sizes[axis];
  return count;
}

}  // namespace

int64_t find_outside(int64_t count, const int64_t* index, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= size) return i;
  }
  return -1;
}

void take_rows(int64_t count, const int64_t* index, const std::byte* table, int64_t row_bytes, std::byte* out) {
  const int64_t rows_to_a_range = 1 + 4 * elementwise_grain / (1 + row_bytes);
  parallel_ranges(count, rows_to_a_range, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(out + i * row_bytes, table + index[i] * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

template <class T>
void add_rows(int64_t count, const int64_t* index, const T* source, int64_t width, T* out) {
  constexpr int64_t columns_at_least = 256 / sizeof(T);  // of one cache line a row, each read would touch another page
  const int64_t enough = elementwise_grain / (1 + count);  // columns worth a thread
  const int64_t columns_to_a_range = (1 + enough / columns_at_least) * columns_at_least;
  parallel_ranges(width, columns_to_a_range, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const T* from = source + i * width;
      T* to = out + index[i] * width;
      for (int64_t j = begin; j < end; ++j) to[j] += from[j];
    }
  });
}

template <class T>
void gather(const PickLayout& layout, const int64_t* index, const T* x, T* out) {
  parallel_ranges(count_of(layout), elementwise_grain, [&](int64_t begin, int64_t end) {
    for_each_pick(layout, index, begin, end, [&](int64_t i, int64_t offset) { out[i] = x[offset]; });
  });
}

template <class T>
void scatter_add(const PickLayout& layout, const int64_t* index, const T* source, T* x) {
  for_each_pick(layout, index, 0, count_of(layout), [&](int64_t i, int64_t offset) { x[offset] += source[i]; });
}

#define CAROUSEL_ADD(T)                                                   \
  template void add_rows(int64_t, const int64_t*, const T*, int64_t, T*); \
  template void gather(const PickLayout&, const int64_t*, const T*, T*);  \
  template void scatter_add(const PickLayout&, const int64_t*, const T*, T*);
CAROUSEL_ADD(float)
CAROUSEL_ADD(double)
CAROUSEL_ADD(int64_t)
#undef CAROUSEL_ADD
template void gather(const PickLayout&, const int64_t*, const bool*, bool*);

}  // namespace carousel::kernels
