#include <carousel/autograd/record.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>

#include <algorithm>

namespace carousel {
namespace {

Dims all_axes(const Shape& shape) {
  Dims axes;
  for (int i = 0; i < shape.rank(); ++i) axes.push_back(i);
  return axes;
}

// Puts back, with size 1, the axes that a reduction of `shape` removed, so that its result broadcasts against the
// input.
Tensor restore_axes(const Tensor& reduced, const Shape& shape, const Dims& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[normalize_axis("reduce", axis, shape.rank())] = 1;
  return reduced.reshape(kept);
}

// The backward of max and min: the whole gradient goes to the element that was chosen.
Backward to_position(const Shape& shape, int64_t axis, const Tensor& position) {
  return [shape, axis, position = Saved(position)](const Tensor& dy) {
    return Gradients{scatter_add(zeros(shape, dy.dtype()), axis, position.get(), restore_axes(dy, shape, {axis}))};
  };
}

}  // namespace

Variable sum(const Variable& x) { return sum(x, all_axes(x.shape())); }

Variable sum(const Variable& x, const Dims& axes, KeepAxes keep) {
  return record(Op::sum, sum(x.value(), axes, keep), {x}, [shape = x.shape(), axes](const Tensor& dy) {
    return Gradients{restore_axes(dy, shape, axes).expand(shape)};
  });
}

Variable mean(const Variable& x) { return mean(x, all_axes(x.shape())); }

Variable mean(const Variable& x, const Dims& axes, KeepAxes keep) {
  Tensor y = mean(x.value(), axes, keep);
  const double count = static_cast<double>(x.value().numel()) / static_cast<double>(std::max<int64_t>(y.numel(), 1));
  return record(Op::mean, y, {x}, [shape = x.shape(), axes, count](const Tensor& dy) {
    return Gradients{(restore_axes(dy, shape, axes) / count).expand(shape)};
  });
}

Variable max(const Variable& x, int64_t axis, KeepAxes keep) {
  return record(Op::max, max(x.value(), axis, keep), {x},
                to_position(x.shape(), axis, argmax(x.value(), axis, keep_axes)));
}

Variable min(const Variable& x, int64_t axis, KeepAxes keep) {
  return record(Op::min, min(x.value(), axis, keep), {x},
                to_position(x.shape(), axis, argmin(x.value(), axis, keep_axes)));
}

Variable max(const Variable& x) { return max(reshape(x, {x.value().numel()}), 0); }
Variable min(const Variable& x) { return min(reshape(x, {x.value().numel()}), 0); }

Variable logsumexp(const Variable& x, int64_t axis, KeepAxes keep) {
  return record(Op::logsumexp, logsumexp(x.value(), axis, keep), {x}, [x = Saved(x.value()), axis](const Tensor& dy) {
    return Gradients{restore_axes(dy, x.get().shape(), {axis}) * softmax(x.get(), axis)};
  });
}

Variable softmax(const Variable& x, int64_t axis) {
  Tensor y = softmax(x.value(), axis);
  return record(Op::softmax, y, {x}, [y = Saved(y), axis](const Tensor& dy) {
    const Tensor weighted = dy * y.get();
    return Gradients{weighted - y.get() * sum(weighted, {axis}, keep_axes)};  // y (dy - sum(y dy))
  });
}

Variable log_softmax(const Variable& x, int64_t axis) {
  Tensor y = log_softmax(x.value(), axis);
  return record(Op::log_softmax, y, {x}, [y = Saved(y), axis](const Tensor& dy) {
    return Gradients{dy - exp(y.get()) * sum(dy, {axis}, keep_axes)};
  });
}

}  // namespace carousel
