#include <carousel/tensor/dims.h>
#include <carousel/tensor/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace carousel {

Dims::Dims(std::span<const int64_t> values) {
  for (int64_t value : values) push_back(value);
}

Dims Dims::filled(int rank, int64_t value) {
  Dims dims;
  for (int i = 0; i < rank; ++i) dims.push_back(value);
  return dims;
}

void Dims::push_back(int64_t value) { insert(rank_, value); }

void Dims::insert(int at, int64_t value) {
  check<ShapeError>(rank_ < max_rank, "shape", "a tensor has at most {} dimensions: got one more than {}", max_rank,
                    to_string(*this));
  std::copy_backward(begin() + at, end(), end() + 1);
  values_[at] = value;
  ++rank_;
}

void Dims::erase(int at) {
  std::copy(begin() + at + 1, end(), begin() + at);
  --rank_;
}

bool Dims::operator==(const Dims& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::string to_string(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", ")); }

int64_t numel(const Shape& shape) {
  int64_t product = 1;
  bool has_zero = false;
  for (int64_t size : shape) {
    check<ShapeError>(size >= 0, "shape", "sizes must not be negative: got {}", to_string(shape));
    if (size == 0) {
      has_zero = true;
    } else {
      check<ShapeError>(!__builtin_mul_overflow(product, size, &product), "shape",
                        "the number of elements must fit into 63 bits: got {}", to_string(shape));
    }
  }
  return has_zero ? 0 : product;
}

Dims contiguous_strides(const Shape& shape) {
  Dims strides = Dims::filled(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return strides;
}

int normalize_axis(std::string_view operation, int64_t axis, int rank) {
  check<IndexError>(-rank <= axis && axis < rank, operation, "axis must be in [{}, {}]: got {}", -rank, rank - 1,
                    axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(std::string_view operation, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {  // from the last axis
    const int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    check<ShapeError>(x == y || x == 1 || y == 1, operation, "shapes must be equal or broadcast: got {} and {}",
                      to_string(a), to_string(b));
    result[rank - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace carousel
