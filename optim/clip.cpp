#include <carousel/optim/clip.h>

#include <carousel/tensor/compare.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/norm.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

// In place, unless somebody besides the variable (and the handle here) holds the gradient's memory.
void scale_gradient(Variable variable, double factor) {
  Tensor gradient = variable.grad();
  if (!gradient.defined()) return;
  if (gradient.storage().use_count() > 2 || !gradient.is_contiguous()) {
    variable.set_grad(gradient * factor);
    return;
  }
  dispatch_floating("clip_grad_norm", gradient.dtype(), [&gradient, factor](auto type) {
    using T = decltype(type);
    kernels::scale(gradient.numel(), gradient.mutable_data<T>(), factor);
  });
}

}  // namespace

double grad_norm(const std::vector<NamedParameter>& parameters) {
  double length = 0;
  for (const NamedParameter& parameter : parameters) {
    if (const Tensor gradient = parameter.variable.grad(); gradient.defined()) {
      length = std::hypot(length, norm(gradient));  // the root of the sum of both squares, which may overflow
    }
  }
  return length;
}

double clip_grad_norm(const std::vector<NamedParameter>& parameters, double limit) {
  check<ValueError>(std::isfinite(limit) && limit > 0, "clip_grad_norm", "limit must be finite and > 0: got {}", limit);
  const double before = grad_norm(parameters);
  const double factor = clip_factor(before, limit);
  if (factor == 1) return before;
  for (const NamedParameter& parameter : parameters) scale_gradient(parameter.variable, factor);
  return before;
}

double clip_factor(double norm, double limit) { return std::isfinite(norm) ? std::min(1.0, limit / (norm + 1e-6)) : 1; }

void clip_grad_value(const std::vector<NamedParameter>& parameters, double limit) {
  check<ValueError>(std::isfinite(limit) && limit > 0, "clip_grad_value", "limit must be finite and > 0: got {}",
                    limit);
  for (const NamedParameter& parameter : parameters) {
    Variable variable = parameter.variable;
    const Tensor gradient = variable.grad();
    if (gradient.defined() && all_finite(gradient)) variable.set_grad(clamp(gradient, -limit, limit));
  }
}

}  // namespace carousel
