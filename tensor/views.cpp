#include <carousel/tensor/operands.h>
#include <carousel/tensor/tensor.h>

#include <algorithm>

namespace carousel {
namespace {

/// `position` clamped to [0, size], counted from the end when negative.
int64_t clamp_position(int64_t position, int64_t size) {
  return std::clamp<int64_t>(position < 0 ? position + size : position, 0, size);
}

/// Replaces a size of -1 by what is left of `count` elements.
Shape resolve_shape(const Shape& shape, const Shape& old_shape, int64_t count) {
  Shape resolved = shape;
  int unknown = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != -1) continue;
    check<ShapeError>(unknown < 0, "reshape", "at most one size may be -1: got {}", shape);
    unknown = axis;
    resolved[axis] = 1;
  }
  const int64_t known = numel(resolved);
  if (unknown >= 0 && known > 0) resolved[unknown] = count / known;
  check<ShapeError>((unknown < 0 || known > 0) && numel(resolved) == count, "reshape",
                    "the number of elements must stay the same: got {} for {}", shape, old_shape);
  return resolved;
}

/// Strides that show the elements of `x` in `shape` (of as many elements), where such strides exist.
std::optional<Dims> strides_for(const Tensor& x, const Shape& shape) {
  Dims strides = contiguous_strides(shape);
  if (x.is_contiguous()) return strides;
  int axis = shape.rank() - 1;  // the next one to get a stride, from the last
  for (int old = x.rank() - 1; old >= 0;) {
    // A block of old axes that is one evenly spaced run: new axes may cut it, but not reach over its edge.
    int64_t stride = x.strides()[old];
    int64_t size = x.shape()[old];
    for (--old; old >= 0 && (x.shape()[old] == 1 || size == 1 || x.strides()[old] == stride * size); --old) {
      if (size == 1) stride = x.strides()[old];
      size *= x.shape()[old];
    }
    for (; axis >= 0 && (size > 1 || shape[axis] == 1); --axis) {
      if (size % shape[axis] != 0) return std::nullopt;
      strides[axis] = stride;
      stride *= shape[axis];
      size /= shape[axis];
    }
    if (size != 1) return std::nullopt;
  }
  return strides;
}

}  // namespace

Tensor Tensor::slice(int64_t axis, Slice range) const {
  const int at = normalize_axis("slice", axis, rank());
  check<ValueError>(range.step > 0, "slice", "step must be positive: got {}", range.step);
  const int64_t start = clamp_position(range.start, shape_[at]);
  const int64_t length = std::max<int64_t>(clamp_position(range.stop, shape_[at]) - start, 0);
  const int64_t step = std::min(range.step, std::max<int64_t>(length, 1));  // as good as any larger step
  Shape shape = shape_;
  Dims strides = strides_;
  shape[at] = (length + step - 1) / step;
  strides[at] *= step;
  return {storage_, shape[at] > 0 ? offset_ + start * strides_[at] : offset_, shape, strides, dtype_};
}

Tensor Tensor::select(int64_t axis, int64_t index) const {
  const int at = normalize_axis("select", axis, rank());
  const int64_t size = shape_[at];
  check<IndexError>(-size <= index && index < size, "select", "index must be in [{}, {}) along axis {}: got {}", -size,
                    size, axis, index);
  Shape shape = shape_;
  Dims strides = strides_;
  shape.erase(at);
  strides.erase(at);
  return {storage_, offset_ + (index < 0 ? index + size : index) * strides_[at], shape, strides, dtype_};
}

Tensor Tensor::transpose(int64_t axis1, int64_t axis2) const {
  const int first = normalize_axis("transpose", axis1, rank());
  const int second = normalize_axis("transpose", axis2, rank());
  Shape shape = shape_;
  Dims strides = strides_;
  std::swap(shape[first], shape[second]);
  std::swap(strides[first], strides[second]);
  return {storage_, offset_, shape, strides, dtype_};
}

Tensor Tensor::permute(const Dims& axes) const {
  check<ShapeError>(axes.rank() == rank(), "permute", "needs each axis once: got axes {} for shape {}", axes, shape_);
  Shape shape = shape_;
  Dims strides = strides_;
  unsigned seen = 0;
  for (int i = 0; i < rank(); ++i) {
    const int from = normalize_axis("permute", axes[i], rank());
    seen |= 1U << from;
    shape[i] = shape_[from];
    strides[i] = strides_[from];
  }
  check<ShapeError>(seen == (1U << rank()) - 1, "permute", "needs each axis once: got axes {} for shape {}", axes,
                    shape_);
  return {storage_, offset_, shape, strides, dtype_};
}

Tensor Tensor::unsqueeze(int64_t axis) const {
  const int at = normalize_axis("unsqueeze", axis, rank() + 1);
  Shape shape = shape_;
  Dims strides = strides_;
  strides.insert(at, at < rank() ? strides_[at] * std::max<int64_t>(shape_[at], 1) : 1);
  shape.insert(at, 1);
  return {storage_, offset_, shape, strides, dtype_};
}

Tensor Tensor::squeeze(int64_t axis) const {
  const int at = normalize_axis("squeeze", axis, rank());
  check<ShapeError>(shape_[at] == 1, "squeeze", "axis {} must have size 1: got {}", axis, shape_);
  Shape shape = shape_;
  Dims strides = strides_;
  shape.erase(at);
  strides.erase(at);
  return {storage_, offset_, shape, strides, dtype_};
}

Tensor Tensor::expand(const Shape& shape) const {
  const int extra = shape.rank() - rank();
  check<ShapeError>(extra >= 0, "expand", "cannot drop axes: got {} for {}", shape, shape_);
  Shape expanded = shape;
  Dims strides = Dims::filled(shape.rank(), 0);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t own = axis < extra ? 1 : shape_[axis - extra];
    if (shape[axis] == -1 && axis >= extra) expanded[axis] = own;
    check<ShapeError>(expanded[axis] == own || own == 1, "expand", "only axes of size 1 grow: got {} for {}", shape,
                      shape_);
    if (axis >= extra && expanded[axis] == own) strides[axis] = strides_[axis - extra];
  }
  return {storage_, offset_, expanded, strides, dtype_};
}

std::optional<Tensor> Tensor::view(const Shape& shape) const {
  const Shape resolved = resolve_shape(shape, shape_, numel_);
  const std::optional<Dims> strides = strides_for(*this, resolved);
  if (!strides) return std::nullopt;
  return Tensor(storage_, offset_, resolved, *strides, dtype_);
}

Tensor Tensor::reshape(const Shape& shape) const {
  std::optional<Tensor> same_memory = view(shape);
  return same_memory ? *same_memory : *clone().view(shape);
}

}  // namespace carousel
