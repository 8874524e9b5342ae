#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/random.h>

#include <cmath>

namespace carousel {
namespace {

// The function contracted with the cotangent, without recording.
double contracted(const GradcheckFunction& function, std::span<const Variable> inputs, const Tensor& cotangent) {
  const NoGrad scope;
  return sum(function(inputs).value() * cotangent).item();
}

double central_difference(const GradcheckFunction& function, std::span<const Variable> inputs, const Tensor& cotangent,
                          Tensor element, double eps) {
  const double x = element.item();
  element.fill_(x + eps);
  const double above = contracted(function, inputs, cotangent);
  element.fill_(x - eps);
  const double below = contracted(function, inputs, cotangent);
  element.fill_(x);
  return (above - below) / (2 * eps);
}

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& function, std::vector<Tensor> inputs,
                          const GradcheckOptions& options) {
  Variables variables;
  for (Tensor& input : inputs) {
    check<ValueError>(input.dtype() == DType::float64, "gradcheck", "inputs must be float64: got {}",
                      to_string(input.dtype()));
    input = input.contiguous();
    variables.push_back(Variable::parameter(input));
  }
  const Variable output = function(variables);
  Rng rng(options.seed);
  const Tensor cotangent = rng.normal(output.shape(), 0, 1, DType::float64);
  std::vector<Tensor> analytic(inputs.size());
  if (output.requires_grad()) analytic = grad(output, variables, cotangent);

  GradcheckResult result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor flat = inputs[i].reshape({-1});
    const std::vector<double> derivatives =
        analytic[i].defined() ? analytic[i].to_vector<double>() : std::vector<double>(flat.numel(), 0.0);
    for (int64_t j = 0; j < flat.numel(); ++j) {
      const double numeric = central_difference(function, variables, cotangent, flat.select(0, j), options.eps);
      const double difference = std::abs(derivatives[j] - numeric);
      result.worst = std::max(result.worst, std::isnan(difference) ? INFINITY : difference);
      if (!(difference <= options.atol + options.rtol * std::abs(numeric)) && result.passed) {
        result.passed = false;
        result.message =
            fmt::format("input {}, element {}: analytic {:.10g}, numeric {:.10g}", i, j, derivatives[j], numeric);
      }
    }
  }
  return result;
}

}  // namespace carousel
