#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

struct PrintOptions {
  int precision = 4;         ///< digits after the point
  int64_t threshold = 1000;  ///< beyond this many elements, the middle of each axis is left out
  int64_t edge_items = 3;    ///< what is kept at either end then
  int64_t line_width = 75;   ///< longer rows go on below, under their first number
};

/// The numbers in NumPy's layout: nested brackets, aligned columns, "..." for what is left out; "undefined" for an
/// undefined tensor. Throws ValueError for a precision outside [0, 50], negative edge_items, a line_width below 1.
std::string to_string(const Tensor& x, const PrintOptions& options = {});
/// `tensor(..., shape=[2, 3], dtype=float32)`
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace carousel
