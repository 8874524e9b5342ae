// Kernels over whole arrays: CAROUSEL_UNARY(name, T) defines name(n, x, y) and CAROUSEL_BINARY(name, T) defines
// name(n, a, b, out), which call name_T of the chosen instruction set for ranges of the arrays, on several threads. For
// the part of a kernel's source that is compiled once.
#pragma once

#include <carousel/tensor/kernels/parallel.h>

#define CAROUSEL_UNARY(name, T)                                             \
  HWY_EXPORT(name##_##T);                                                   \
  void name(int64_t n, const T* x, T* y) {                                  \
    parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) { \
      HWY_DYNAMIC_DISPATCH(name##_##T)(end - begin, x + begin, y + begin);  \
    });                                                                     \
  }

#define CAROUSEL_BINARY(name, T)                                                        \
  HWY_EXPORT(name##_##T);                                                               \
  void name(int64_t n, const T* a, const T* b, T* out) {                                \
    parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {             \
      HWY_DYNAMIC_DISPATCH(name##_##T)(end - begin, a + begin, b + begin, out + begin); \
    });                                                                                 \
  }
