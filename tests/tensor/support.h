#pragma once

#include <carousel/tensor/random.h>
#include <carousel/tensor/tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace carousel::test {

/// Expects `body` to throw exactly an E with this text.
template <class E, class Body>
void expect_error(const std::string& text, const Body& body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown; expected: " << text;
  } catch (const E& error) {
    EXPECT_EQ(error.what(), text);
  }
}

/// Calls `visit(index)` for every position of `shape` in row-major order.
inline void for_each_index(const Shape& shape, const std::function<void(const Dims&)>& visit) {
  if (numel(shape) == 0) return;
  Dims index = Dims::filled(shape.rank(), 0);
  for (;;) {
    visit(index);
    int axis = shape.rank() - 1;
    while (axis >= 0 && ++index[axis] == shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}

/// The element at `index`, by plain arithmetic on offset and strides; the leading axes and those of size 1 broadcast.
template <class T>
T at(const Tensor& x, const Dims& index) {
  int64_t position = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t i = index[axis + index.rank() - x.rank()];
    position += (x.shape()[axis] == 1 ? 0 : i) * x.strides()[axis];
  }
  return x.data<T>()[position];
}

/// A view of random numbers with this shape but strides, order and offset that are anything but row-major.
template <class T>
Tensor scrambled(const Shape& shape, Rng& rng) {
  const Tensor order = rng.permutation(shape.rank());
  Shape stored;
  Dims back = Dims::filled(shape.rank(), 0);
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t axis = order.data<int64_t>()[i];
    stored.push_back(shape[static_cast<int>(axis)] * 2 + 3);
    back[static_cast<int>(axis)] = i;
  }
  Tensor view = rng.integers(stored, -50, 50).to(dtype_of<T>()).permute(back);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t start = rng.next_integer(0, 3);
    const int64_t step = rng.next_integer(1, 3);
    view = view.slice(axis, {.start = start, .stop = start + shape[axis] * step, .step = step});
  }
  return view;
}

/// A shape of `rank` sizes in [0, 4], mostly above 0.
inline Shape random_shape(int rank, Rng& rng) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(rng.next_integer(0, 20) == 0 ? 0 : rng.next_integer(1, 5));
  return shape;
}

}  // namespace carousel::test
