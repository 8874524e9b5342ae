#include <carousel/tensor/operands.h>
#include <carousel/tensor/tensor.h>

#include <cstdlib>
#include <utility>

namespace carousel {
namespace {

/// First and last byte that `x` (not empty) spans, relative to its storage.
std::pair<int64_t, int64_t> byte_range(const Tensor& x) {
  int64_t first = x.offset(), last = x.offset();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t reach = x.shape()[axis] > 1 ? (x.shape()[axis] - 1) * x.strides()[axis] : 0;
    (reach < 0 ? first : last) += reach;
  }
  const auto size = static_cast<int64_t>(size_of(x.dtype()));
  return {first * size, last * size + size - 1};
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.offset() == b.offset() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         a.strides() == b.strides();
}

}  // namespace

void check_writable(std::string_view operation, const Tensor& x) {
  check_defined(operation, x);
  if (x.is_contiguous()) return;
  // Addresses are distinct for sure when each step leaps over all that the axes with smaller steps reach.
  const Dims& strides = x.strides();
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.shape()[axis] <= 1) continue;
    int64_t reach = 0;
    for (int other = 0; other < x.rank(); ++other) {
      const bool below = std::pair(std::abs(strides[other]), other) < std::pair(std::abs(strides[axis]), axis);
      if (below) reach += std::abs(strides[other]) * (x.shape()[other] - 1);
    }
    check<ValueError>(std::abs(strides[axis]) > reach, operation,
                      "cannot write to a tensor whose elements overlap: got shape {} with strides {}", x.shape(),
                      strides);
  }
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || a.numel() == 0 || b.numel() == 0) return false;
  const auto [a_first, a_last] = byte_range(a);
  const auto [b_first, b_last] = byte_range(b);
  return a_first <= b_last && b_first <= a_last;
}

Tensor apart_from(const Tensor& target, const Tensor& source) {
  return may_overlap(target, source) && !same_layout(target, source) ? source.clone() : source;
}

}  // namespace carousel
