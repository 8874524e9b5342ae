#pragma once

#include <carousel/nn/module.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace carousel::test {

/// d loss / d `element`, one float64 number that is changed in place and put back, by the central difference. Its error
/// is eps^2 of truncation and 1e-16 / eps of rounding, times the size of the loss and of its third derivative.
inline double difference_quotient(Tensor element, const std::function<Variable()>& loss) {
  constexpr double eps = 1e-6;
  const double value = element.item();
  element.fill_(value + eps);
  const double above = loss().value().item();
  element.fill_(value - eps);
  const double below = loss().value().item();
  element.fill_(value);
  return (above - below) / (2 * eps);
}

/// How far a gradient may be from its quotient: a thousand times the errors above.
inline double quotient_tolerance(double quotient) { return 1e-7 * (1 + std::abs(quotient)); }

/// Zeros where no gradient arrived: backward leaves it undefined where the loss does not depend on the parameter.
inline Tensor gradient_of(const NamedParameter& parameter) {
  const Tensor gradient = parameter.variable.grad();
  return gradient.defined() ? gradient : zeros_like(parameter.variable.value());
}

/// Compares d loss / d every element of every parameter with its difference quotient.
inline void expect_difference_quotients(Module& module, const std::function<Variable()>& loss) {
  module.zero_grad();
  loss().backward();
  for (const NamedParameter& parameter : module.parameters()) {
    const Tensor flat = parameter.variable.value().reshape({-1}), gradient = gradient_of(parameter).reshape({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double quotient = difference_quotient(flat.slice(0, {.start = i, .stop = i + 1}), loss);
      EXPECT_NEAR(gradient.select(0, i).item(), quotient, quotient_tolerance(quotient)) << parameter.name << i;
    }
  }
}

}  // namespace carousel::test
