#include <carousel/autograd/record.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/reduce.h>

namespace carousel {
namespace {

std::vector<Tensor> values_of(std::span<const Variable> variables) {
  std::vector<Tensor> values;
  values.reserve(variables.size());
  for (const Variable& variable : variables) values.push_back(variable.value());
  return values;
}

// Zeros in place of the cotangents that did not arrive.
std::vector<Tensor> filled(std::span<const Tensor> cotangents, const std::vector<Shape>& shapes, DType dtype) {
  std::vector<Tensor> all;
  all.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    all.push_back(cotangents[i].defined() ? cotangents[i] : zeros(shapes[i], dtype));
  }
  return all;
}

// The array whose slices along `axis` these are, if they lie in memory like that; undefined otherwise. An operation
// that makes the gradients of several slices can put them there.
Tensor array_of(std::span<const Tensor> slices, int axis) {
  if (slices.size() < 2 || !slices[0].defined() || !slices[1].defined()) return {};
  const Tensor& first = slices[0];
  const int64_t distance = slices[1].offset() - first.offset();
  for (size_t i = 0; i < slices.size(); ++i) {
    const Tensor& slice = slices[i];
    const bool fits = slice.defined() && slice.storage() == first.storage() && slice.shape() == first.shape() &&
                      slice.strides() == first.strides() && slice.dtype() == first.dtype() &&
                      slice.offset() == first.offset() + static_cast<int64_t>(i) * distance;
    if (!fits || distance <= 0) return {};
  }
  Shape shape = first.shape();
  Dims strides = first.strides();
  shape.insert(axis, static_cast<int64_t>(slices.size()));
  strides.insert(axis, distance);
  return {first.storage(), first.offset(), shape, strides, first.dtype()};
}

std::vector<Shape> shapes_of(std::span<const Tensor> tensors) {
  std::vector<Shape> shapes;
  shapes.reserve(tensors.size());
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

}  // namespace

// The backward of a view that leaves elements out adds to the same view.
Variable slice(const Variable& x, int64_t axis, Slice range) {
  return record(Op::slice, x.value().slice(axis, range), {x}, [shape = x.shape(), axis, range](const Tensor& dy) {
    return Gradients{{shape, dy.dtype(), [axis, range, dy](Tensor& dx) {
                        Tensor part = dx.slice(axis, range);
                        add_(part, dy);
                      }}};
  });
}

Variable select(const Variable& x, int64_t axis, int64_t index) {
  return record(Op::select, x.value().select(axis, index), {x}, [shape = x.shape(), axis, index](const Tensor& dy) {
    return Gradients{{shape, dy.dtype(), [axis, index, dy](Tensor& dx) {
                        Tensor part = dx.select(axis, index);
                        add_(part, dy);
                      }}};
  });
}

Variable transpose(const Variable& x, int64_t axis1, int64_t axis2) {
  const Remake remake_x = remake_of(x);
  Remake remake;
  if (remake_x) remake = [remake_x, axis1, axis2] { return remake_x().transpose(axis1, axis2); };
  return record(
      Op::transpose, x.value().transpose(axis1, axis2), {x},
      [axis1, axis2](const Tensor& dy) { return Gradients{dy.transpose(axis1, axis2)}; }, remake);
}

Variable permute(const Variable& x, const Dims& axes) {
  return record(Op::permute, x.value().permute(axes), {x}, [axes](const Tensor& dy) {
    Dims inverse = axes;
    for (int i = 0; i < axes.rank(); ++i) inverse[normalize_axis("permute", axes[i], axes.rank())] = i;
    return Gradients{dy.permute(inverse)};
  });
}

Variable unsqueeze(const Variable& x, int64_t axis) {
  return record(Op::unsqueeze, x.value().unsqueeze(axis), {x},
                [axis](const Tensor& dy) { return Gradients{dy.squeeze(axis)}; });
}

Variable squeeze(const Variable& x, int64_t axis) {
  return record(Op::squeeze, x.value().squeeze(axis), {x},
                [axis](const Tensor& dy) { return Gradients{dy.unsqueeze(axis)}; });
}

Variable expand(const Variable& x, const Shape& shape) {
  return record(Op::expand, x.value().expand(shape), {x},
                [shape = x.shape()](const Tensor& dy) { return Gradients{sum_to(dy, shape)}; });
}

Variable reshape(const Variable& x, const Shape& shape) {
  return record(Op::reshape, x.value().reshape(shape), {x},
                [shape = x.shape()](const Tensor& dy) { return Gradients{dy.reshape(shape)}; });
}

Variable to(const Variable& x, DType dtype) {
  check<ValueError>(is_floating(dtype), "to", "a differentiable conversion is to float32 or float64: got {}",
                    to_string(dtype));
  return record(Op::to, x.value().to(dtype), {x},
                [dtype = x.dtype()](const Tensor& dy) { return Gradients{dy.to(dtype)}; });
}

Variable concatenate(std::span<const Variable> parts, int64_t axis) {
  std::vector<int64_t> sizes;
  Tensor y = concatenate(values_of(parts), axis);
  for (const Variable& part : parts) sizes.push_back(part.size(axis));
  return record(Op::concatenate, y, parts, [sizes, axis](const Tensor& dy) {
    const std::vector<Tensor> each = split(dy, sizes, axis);
    return Gradients(each.begin(), each.end());
  });
}

Variable stack(std::span<const Variable> parts, int64_t axis) {
  return record(Op::stack, stack(values_of(parts), axis), parts, [count = parts.size(), axis](const Tensor& dy) {
    Gradients gradients;
    gradients.reserve(count);
    for (size_t i = 0; i < count; ++i) gradients.push_back(dy.select(axis, static_cast<int64_t>(i)));
    return gradients;
  });
}

Variables split(const Variable& x, std::span<const int64_t> sizes, int64_t axis) {
  std::vector<Tensor> parts = split(x.value(), sizes, axis);
  return record(Op::split, parts, std::span(&x, 1),
                [shapes = shapes_of(parts), dtype = x.dtype(), axis](std::span<const Tensor> dys) {
                  return Gradients{concatenate(filled(dys, shapes, dtype), axis)};
                });
}

Variables unbind(const Variable& x, int64_t axis) {
  std::vector<Tensor> parts;
  const int64_t count = x.size(axis);
  parts.reserve(count);
  for (int64_t i = 0; i < count; ++i) parts.push_back(x.value().select(axis, i));
  return record(Op::unbind, parts, std::span(&x, 1),
                [shapes = shapes_of(parts), dtype = x.dtype(),
                 axis = normalize_axis("unbind", axis, x.value().rank())](std::span<const Tensor> dys) {
                  const Tensor dx = array_of(dys, axis);
                  return Gradients{dx.defined() ? dx : stack(filled(dys, shapes, dtype), axis)};
                });
}

}  // namespace carousel
