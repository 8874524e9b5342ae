#pragma once

#include <cstdint>

namespace carousel::kernels {

/// Whether a product replaces what is there or adds to it.
enum class Into { overwrite, accumulate };

/// One side of a matrix product as it lies in memory: row-major with rows `ld` apart, or the transpose of that.
template <class T>
struct Factor {
  const T* data;
  int64_t ld;
  bool transposed = false;

  int64_t down() const { return transposed ? 1 : ld; }
  int64_t right() const { return transposed ? ld : 1; }
  const T* at(int64_t i, int64_t j) const { return data + i * down() + j * right(); }
};

}  // namespace carousel::kernels
