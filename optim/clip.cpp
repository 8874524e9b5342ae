#include <carousel/optim/clip.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {

double grad_norm(const std::vector<NamedParameter>& parameters) {
  double squares = 0;
  for (const NamedParameter& parameter : parameters) {
    if (const Tensor gradient = parameter.variable.grad(); gradient.defined()) {
      const double length = norm(gradient);
      squares += length * length;
    }
  }
  return std::sqrt(squares);
}

double clip_grad_norm(const std::vector<NamedParameter>& parameters, double limit) {
  check<ValueError>(std::isfinite(limit) && limit > 0, "clip_grad_norm", "limit must be finite and > 0: got {}", limit);
  const double before = grad_norm(parameters);
  const double scale = limit / (before + 1e-6);
  if (!std::isfinite(before) || scale >= 1) {
    return before;
  }
  for (const NamedParameter& parameter : parameters) {
    Variable variable = parameter.variable;
    if (const Tensor gradient = variable.grad(); gradient.defined()) {
      variable.set_grad(gradient * scale);
    }
  }
  return before;
}

void clip_grad_value(const std::vector<NamedParameter>& parameters, double limit) {
  check<ValueError>(std::isfinite(limit) && limit > 0, "clip_grad_value", "limit must be finite and > 0: got {}",
                    limit);
  for (const NamedParameter& parameter : parameters) {
    Variable variable = parameter.variable;
    if (const Tensor gradient = variable.grad(); gradient.defined()) {
      variable.set_grad(clamp(gradient, -limit, limit));
    }
  }
}

}  // namespace carousel
