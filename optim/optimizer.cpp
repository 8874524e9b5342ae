#include <carousel/optim/optimizer.h>

#include <carousel/tensor/compare.h>

#include <cmath>
#include <set>

namespace carousel {

Optimizer::Optimizer(std::vector<NamedParameter> parameters, double weight_decay)
    : parameters_(std::move(parameters)), weight_decay_(weight_decay) {
  check<ValueError>(!parameters_.empty(), "Optimizer", "needs at least one parameter: got none");
  check<ValueError>(std::isfinite(weight_decay) && weight_decay >= 0, "Optimizer",
                    "weight_decay must be finite and >= 0: got {}", weight_decay);
  std::set<std::string> names;
  for (const NamedParameter& parameter : parameters_) {
    check<ValueError>(names.insert(parameter.name).second, "Optimizer", "a name must be used once: got '{}' again",
                      parameter.name);
    check<ValueError>(parameter.variable.value().is_contiguous(), "Optimizer",
                      "parameters must be row-major in memory: got '{}', which is not", parameter.name);
  }
}

std::vector<Optimizer::Slots>& Optimizer::slots() const {
  if (slots_.empty()) {
    for (const NamedParameter& parameter : parameters_) {
      slots_.push_back(make_slots(parameter.variable.value()));
    }
  }
  return slots_;
}

void Optimizer::step(double lr) {
  check<ValueError>(std::isfinite(lr) && lr >= 0, "Optimizer", "rate must be finite and >= 0: got {}", lr);
  std::vector<Tensor> gradients;
  for (const NamedParameter& parameter : parameters_) {
    const Tensor gradient = parameter.variable.grad();
    check<ValueError>(!gradient.defined() || all_finite(gradient), "Optimizer",
                      "gradients must be finite: got NaN or infinity in '{}'", parameter.name);
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
  }
  ++steps_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (gradients[i].defined()) {
      Tensor value = parameters_[i].variable.value();
      update(value, gradients[i], slots()[i], lr, parameters_[i].decay ? weight_decay_ : 0, steps_);
    }
  }
}

void Optimizer::zero_grad() {
  for (NamedParameter& parameter : parameters_) {
    parameter.variable.zero_grad();
  }
}

std::vector<ParameterGroup> Optimizer::groups() const {
  ParameterGroup decayed{.names = {}, .weight_decay = weight_decay_};
  ParameterGroup others;
  for (const NamedParameter& parameter : parameters_) {
    (parameter.decay ? decayed : others).names.push_back(parameter.name);
  }
  return {decayed, others};
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (const auto& [name, tensor] : slots()[i]) {
      state.emplace_back(parameters_[i].name + "/" + name, tensor);
    }
  }
  return state;
}

void Optimizer::set_steps(int64_t steps) {
  check<ValueError>(steps >= 0, "Optimizer", "steps must be >= 0: got {}", steps);
  steps_ = steps;
}

}  // namespace carousel
