#include <carousel/tensor/dims.h>
#include <carousel/tensor/error.h>

#include <algorithm>

namespace carousel {
namespace {

void check_rank(int64_t rank) {
  check<ShapeError>(rank <= Dims::max_rank, "shape", "a tensor has at most {} dimensions: got {}", Dims::max_rank,
                    rank);
}

}  // namespace

Dims::Dims(std::span<const int64_t> values) {
  check_rank(static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), values_.begin());
  rank_ = static_cast<int>(values.size());
}

Dims Dims::filled(int rank, int64_t value) {
  check_rank(rank);
  Dims dims;
  dims.rank_ = rank;
  std::fill(dims.begin(), dims.end(), value);
  return dims;
}

void Dims::push_back(int64_t value) { insert(rank_, value); }

void Dims::insert(int at, int64_t value) {
  check_rank(rank_ + 1);
  std::copy_backward(begin() + at, end(), end() + 1);
  values_[at] = value;
  ++rank_;
}

void Dims::erase(int at) {
  std::copy(begin() + at + 1, end(), begin() + at);
  --rank_;
}

bool Dims::operator==(const Dims& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int64_t value : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

int64_t numel(const Shape& shape) {
  int64_t product = 1;
  bool has_zero = false;
  for (int64_t size : shape) {
    check<ShapeError>(size >= 0, "shape", "sizes must not be negative: got {}", shape);
    if (size == 0) {
      has_zero = true;
    } else {
      check<ShapeError>(!__builtin_mul_overflow(product, size, &product), "shape",
                        "the number of elements must fit into 63 bits: got {}", shape);
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
  check<IndexError>(-rank <= axis && axis < rank, operation, "axis must be in [{}, {}]: got {}", -rank, rank - 1, axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(std::string_view operation, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {  // from the last axis
    const int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    check<ShapeError>(x == y || x == 1 || y == 1, operation, "shapes must be equal or broadcast: got {} and {}", a, b);
    result[rank - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace carousel

fmt::format_context::iterator fmt::formatter<carousel::Dims>::format(const carousel::Dims& dims,
                                                                     fmt::format_context& context) const {
  const std::string text = carousel::to_string(dims);
  return std::copy(text.begin(), text.end(), context.out());
}
