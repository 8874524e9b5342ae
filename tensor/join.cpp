#include <carousel/tensor/join.h>
#include <carousel/tensor/operands.h>

namespace carousel {
namespace {

bool agree_off_axis(const Shape& a, const Shape& b, int axis) {
  bool agree = a.rank() == b.rank();
  for (int i = 0; agree && i < a.rank(); ++i) agree = i == axis || a[i] == b[i];
  return agree;
}

void check_parts(std::string_view operation, std::span<const Tensor> parts) {
  check<ValueError>(!parts.empty(), operation, "needs at least one part: got none");
  for (const Tensor& part : parts) check_same_dtype(operation, parts[0], part);
}

}  // namespace

Tensor concatenate(std::span<const Tensor> parts, int64_t axis) {
  check_parts("concatenate", parts);
  Shape shape = parts[0].shape();
  const int at = normalize_axis("concatenate", axis, shape.rank());
  shape[at] = 0;
  for (const Tensor& part : parts) {
    check<ShapeError>(agree_off_axis(part.shape(), parts[0].shape(), at), "concatenate",
                      "sizes off axis {} must be equal: got {} and {}", at, parts[0].shape(), part.shape());
    shape[at] += part.shape()[at];
  }
  Tensor out(shape, parts[0].dtype());
  int64_t start = 0;
  for (const Tensor& part : parts) {
    const int64_t stop = start + part.shape()[at];
    out.slice(at, {start, stop}).copy_(part);
    start = stop;
  }
  return out;
}

Tensor stack(std::span<const Tensor> parts, int64_t axis) {
  check_parts("stack", parts);
  const int at = normalize_axis("stack", axis, parts[0].rank() + 1);
  std::vector<Tensor> slabs;
  for (const Tensor& part : parts) {
    check<ShapeError>(part.shape() == parts[0].shape(), "stack", "all parts must have one shape: got {} and {}",
                      parts[0].shape(), part.shape());
    slabs.push_back(part.unsqueeze(at));
  }
  return concatenate(slabs, at);
}

std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int64_t axis) {
  check_defined("split", x);
  const int at = normalize_axis("split", axis, x.rank());
  int64_t start = 0;
  std::vector<Tensor> parts;
  for (int64_t size : sizes) {
    check<ShapeError>(0 <= size && size <= x.shape()[at] - start, "split",
                      "sizes must not be negative or exceed the rest of axis {}: got {} after {} for {}", at, size,
                      start, x.shape());
    parts.push_back(x.slice(at, {start, start + size}));
    start += size;
  }
  check<ShapeError>(start == x.shape()[at], "split", "sizes must add up to the size of axis {}: got {} for {}", at,
                    start, x.shape());
  return parts;
}

}  // namespace carousel
