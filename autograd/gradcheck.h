#pragma once

#include <carousel/autograd/variable.h>

#include <functional>
#include <string>

namespace carousel {

struct GradcheckOptions {
  double eps = 1e-6;   ///< half the width of the central difference
  double atol = 1e-5;  ///< |analytic - numeric| <= atol + rtol |numeric|
  double rtol = 1e-3;
  uint64_t seed = 0;  ///< of the random cotangent
};

struct GradcheckResult {
  bool passed = true;
  double worst = 0;     ///< largest |analytic - numeric|
  std::string message;  ///< the first disagreement: input, element, both derivatives

  explicit operator bool() const { return passed; }
};

using GradcheckFunction = std::function<Variable(std::span<const Variable> inputs)>;

/// Compares the backward of `function` at `inputs` with central differences, contracted with a random cotangent, for
/// every element of every input. Throws ValueError unless all inputs are float64 (in float32 a difference quotient is
/// mostly rounding). `function` must be deterministic. Inputs are changed in place and restored.
GradcheckResult gradcheck(const GradcheckFunction& function, std::vector<Tensor> inputs,
                          const GradcheckOptions& options = {});

}  // namespace carousel
