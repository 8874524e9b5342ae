#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/norm.h>
#include <carousel/tensor/kernels/reduce.h>
#include <carousel/tensor/kernels/softmax.h>
#include <carousel/tensor/operands.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace carousel {
namespace {

using kernels::ReduceLayout;

/// Which axes of a tensor to reduce.
class AxisSet {
 public:
  AxisSet(std::string_view operation, const Tensor& x, const Dims& axes) {
    check_defined(operation, x);
    for (int64_t axis : axes) {
      bool& holds = holds_[normalize_axis(operation, axis, x.rank())];
      check<ValueError>(!holds, operation, "no axis may be named twice: got axes {} for {}", axes, x.shape());
      holds = true;
    }
  }
  static AxisSet all(std::string_view operation, const Tensor& x) {
    AxisSet set(operation, x, {});
    set.holds_.fill(true);
    return set;
  }

  bool holds(int axis) const { return holds_[axis]; }

 private:
  std::array<bool, Dims::max_rank> holds_{};
};

Shape reduced_shape(const Shape& shape, const AxisSet& axes, KeepAxes keep) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!axes.holds(i)) {
      result.push_back(shape[i]);
    } else if (keep.keep) {
      result.push_back(1);
    }
  }
  return result;
}

/// The axes that stay, then those that go, each in the order that lets most of them merge: results need row-major
/// order, sums do not care.
Dims stay_then_go(const Tensor& x, const AxisSet& axes) {
  Dims stay, go;
  for (int i = 0; i < x.rank(); ++i) (axes.holds(i) ? go : stay).push_back(i);
  std::stable_sort(go.begin(), go.end(), [&](int64_t a, int64_t b) {
    return x.strides()[static_cast<int>(a)] > x.strides()[static_cast<int>(b)];
  });
  for (int64_t axis : go) stay.push_back(axis);
  return stay;
}

/// A tensor with the layout that a kernel reads it by.
struct Plan {
  Tensor x;
  ReduceLayout layout;
};

/// Plans a reduction of the last `count` axes of `x`, on the numbers as they lie where that is possible, else on a
/// copy.
Plan plan_last_axes(const Tensor& x, int count) {
  kernels::Nest<1> stay, go;
  for (int i = 0; i < x.rank(); ++i) (i < x.rank() - count ? stay : go).add_axis(x.shape()[i], {x.strides()[i]});
  if (x.numel() == 0) return {x, {.inner = stay.count, .n = 0}};
  if (stay.rank > 2 || go.rank > 1) return plan_last_axes(x.contiguous(), count);
  ReduceLayout layout;
  if (stay.rank == 2) {
    layout.outer = stay.sizes[0];
    layout.outer_stride = stay.steps[0][0];
  }
  if (stay.rank >= 1) {
    layout.inner = stay.sizes[stay.rank - 1];
    layout.inner_stride = stay.steps[stay.rank - 1][0];
  }
  layout.n = go.count;
  if (go.rank == 1) layout.stride = go.steps[0][0];
  return {x, layout};
}

Plan plan_reduction(const Tensor& x, const AxisSet& axes) {
  int count = 0;
  for (int i = 0; i < x.rank(); ++i) count += axes.holds(i);
  return plan_last_axes(x.permute(stay_then_go(x, axes)), count);
}

/// The kernels' overloads as one argument each.
constexpr auto sum_kernel = [](auto... arguments) { kernels::sum(arguments...); };
constexpr auto mean_kernel = [](auto... arguments) { kernels::mean(arguments...); };
constexpr auto max_kernel = [](auto... arguments) { kernels::max(arguments...); };
constexpr auto min_kernel = [](auto... arguments) { kernels::min(arguments...); };

template <class T, class Kernel>
Tensor reduce_as(const Tensor& x, const AxisSet& axes, KeepAxes keep, Kernel kernel) {
  Tensor out(reduced_shape(x.shape(), axes, keep), x.dtype());
  const Plan plan = plan_reduction(x, axes);
  if (out.numel() > 0) kernel(plan.layout, plan.x.data<T>(), out.mutable_data<T>());
  return out;
}

template <class Kernel>
Tensor reduce(std::string_view operation, const Tensor& x, const AxisSet& axes, KeepAxes keep, Kernel kernel) {
  return dispatch_numeric(operation, x.dtype(),
                          [&](auto zero) { return reduce_as<decltype(zero)>(x, axes, keep, kernel); });
}

Tensor mean_over(const Tensor& x, const AxisSet& axes, KeepAxes keep) {
  return dispatch_floating("mean", x.dtype(),
                           [&](auto zero) { return reduce_as<decltype(zero)>(x, axes, keep, mean_kernel); });
}

void check_not_empty(std::string_view operation, const Tensor& x, const AxisSet& axes) {
  for (int i = 0; i < x.rank(); ++i) {
    check<ShapeError>(!axes.holds(i) || x.shape()[i] > 0, operation, "axis {} must not be empty: got {}", i, x.shape());
  }
}

template <class Kernel>
Tensor extreme(std::string_view operation, const Tensor& x, const AxisSet& axes, KeepAxes keep, Kernel kernel) {
  check_not_empty(operation, x, axes);
  return reduce(operation, x, axes, keep, kernel);
}

template <class Kernel>
Tensor position_of_extreme(std::string_view operation, const Tensor& x, int64_t axis, KeepAxes keep, Kernel kernel) {
  const AxisSet axes(operation, x, {axis});
  const Tensor value = extreme(operation, x, axes, keep, kernel);
  Tensor out(value.shape(), DType::int64);
  const Plan plan = plan_reduction(x, axes);
  if (out.numel() == 0) return out;
  dispatch_numeric(operation, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::find_first(plan.layout, plan.x.data<T>(), value.data<T>(), out.mutable_data<int64_t>());
  });
  return out;
}

/// Calls `kernel(rows, n, x, y)` with `axis` last and contiguous; the result has x's shape.
template <class Kernel>
Tensor along_axis(std::string_view operation, const Tensor& x, int64_t axis, Kernel kernel) {
  check_defined(operation, x);
  const int at = normalize_axis(operation, axis, x.rank());
  const Tensor input = x.transpose(at, -1).contiguous();
  Tensor out(input.shape(), x.dtype());
  dispatch_floating(operation, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (out.numel() > 0) kernel(x.numel() / x.shape()[at], x.shape()[at], input.data<T>(), out.mutable_data<T>());
  });
  return out.transpose(at, -1).contiguous();
}

double squares_of(std::string_view operation, const Tensor& x) {
  check_defined(operation, x);
  return dispatch_floating(operation, x.dtype(), [&](auto zero) {
    const Tensor input = x.contiguous();
    return kernels::sum_of_squares(x.numel(), input.template data<decltype(zero)>());
  });
}

}  // namespace

Tensor sum(const Tensor& x) { return reduce("sum", x, AxisSet::all("sum", x), {}, sum_kernel); }

Tensor sum(const Tensor& x, const Dims& axes, KeepAxes keep) {
  return reduce("sum", x, AxisSet("sum", x, axes), keep, sum_kernel);
}

Tensor mean(const Tensor& x) { return mean_over(x, AxisSet::all("mean", x), {}); }

Tensor mean(const Tensor& x, const Dims& axes, KeepAxes keep) { return mean_over(x, AxisSet("mean", x, axes), keep); }

Tensor max(const Tensor& x) { return extreme("max", x, AxisSet::all("max", x), {}, max_kernel); }

Tensor max(const Tensor& x, int64_t axis, KeepAxes keep) {
  return extreme("max", x, AxisSet("max", x, {axis}), keep, max_kernel);
}

Tensor min(const Tensor& x) { return extreme("min", x, AxisSet::all("min", x), {}, min_kernel); }

Tensor min(const Tensor& x, int64_t axis, KeepAxes keep) {
  return extreme("min", x, AxisSet("min", x, {axis}), keep, min_kernel);
}

Tensor argmax(const Tensor& x) {
  check_not_empty("argmax", x, AxisSet::all("argmax", x));
  return argmax(x.reshape({x.numel()}), 0);
}

Tensor argmax(const Tensor& x, int64_t axis, KeepAxes keep) {
  return position_of_extreme("argmax", x, axis, keep, max_kernel);
}

Tensor argmin(const Tensor& x, int64_t axis, KeepAxes keep) {
  return position_of_extreme("argmin", x, axis, keep, min_kernel);
}

Tensor logsumexp(const Tensor& x, int64_t axis, KeepAxes keep) {
  const AxisSet axes("logsumexp", x, {axis});
  const Tensor input = x.permute(stay_then_go(x, axes)).contiguous();
  Tensor out(reduced_shape(x.shape(), axes, keep), x.dtype());
  dispatch_floating("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (out.numel() == 0) return;
    kernels::logsumexp(out.numel(), input.shape().back(), input.data<T>(), out.mutable_data<T>());
  });
  return out;
}

Tensor softmax(const Tensor& x, int64_t axis) {
  return along_axis("softmax", x, axis, [](auto... arguments) { kernels::softmax(arguments...); });
}

Tensor log_softmax(const Tensor& x, int64_t axis) {
  return along_axis("log_softmax", x, axis, [](auto... arguments) { kernels::log_softmax(arguments...); });
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  check_defined("sum_to", x);
  const int lead = x.rank() - shape.rank();
  const auto fits = [&](int i) { return shape[i] == x.shape()[lead + i] || shape[i] == 1; };
  bool broadcasts = lead >= 0;
  for (int i = 0; broadcasts && i < shape.rank(); ++i) broadcasts = fits(i);
  check<ShapeError>(broadcasts, "sum_to", "the target must broadcast to the tensor's shape: got {} and {}", shape,
                    x.shape());
  if (shape == x.shape()) return x;
  Dims axes;
  for (int i = 0; i < x.rank(); ++i) {
    if (i < lead || shape[i - lead] != x.shape()[i]) axes.push_back(i);
  }
  return sum(x, axes).reshape(shape);
}

double sum_of_squares(const Tensor& x) { return squares_of("sum_of_squares", x); }

double norm(const Tensor& x) {
  const double squares = squares_of("norm", x);
  if (!std::isinf(squares)) return std::sqrt(squares);
  const double largest = max(abs(x)).item();  // the squares of doubles beyond 1e154 overflow where the norm does not
  return std::isinf(largest) ? largest : largest * std::sqrt(squares_of("norm", x / largest));
}

}  // namespace carousel
