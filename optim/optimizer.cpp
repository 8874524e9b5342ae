#include <carousel/optim/clip.h>
#include <carousel/optim/optimizer.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {
namespace {

void check_group(const ParameterGroup& group) {
  check<ValueError>(std::isfinite(group.weight_decay) && group.weight_decay >= 0, "Optimizer",
                    "weight_decay must be finite and >= 0: got {}", group.weight_decay);
  check<ValueError>(std::isfinite(group.lr_scale) && group.lr_scale >= 0, "Optimizer",
                    "lr_scale must be finite and >= 0: got {}", group.lr_scale);
}

}  // namespace

std::vector<ParameterGroup> split_by_decay(const std::vector<NamedParameter>& parameters, double weight_decay) {
  ParameterGroup decayed{.parameters = {}, .weight_decay = weight_decay};
  ParameterGroup others;
  for (const NamedParameter& parameter : parameters) {
    (parameter.decay ? decayed : others).parameters.push_back(parameter);
  }
  return {decayed, others};
}

Optimizer::Optimizer(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {
  for (size_t group = 0; group < groups_.size(); ++group) {
    check_group(groups_[group]);
    for (const NamedParameter& parameter : groups_[group].parameters) add(parameter, group);
  }
  check<ValueError>(!entries_.empty(), "Optimizer", "needs at least one parameter: got none");
}

std::vector<ParameterGroup> Optimizer::with_own_decay(std::vector<ParameterGroup> groups, double configured) {
  check<ValueError>(configured == 0, "Optimizer",
                    "weight_decay must be set in the groups or without them: got {} besides", configured);
  return groups;
}

void Optimizer::add(const NamedParameter& parameter, size_t group) {
  for (const NamedParameter& other : parameters_) {
    const bool twice = other.name == parameter.name || other.variable.node() == parameter.variable.node();
    check<ValueError>(!twice, "Optimizer", "a parameter must be in one group, once: got '{}' and '{}'", other.name,
                      parameter.name);
  }
  check<ValueError>(parameter.variable.value().is_contiguous(), "Optimizer",
                    "parameters must be row-major in memory: got '{}', which is not", parameter.name);
  parameters_.push_back(parameter);
  entries_.push_back({.group = group, .updates = zeros({}, DType::int64), .slots = {}});
}

std::vector<Optimizer::Entry>& Optimizer::entries() const {
  if (!has_slots_) {
    for (size_t i = 0; i < entries_.size(); ++i) entries_[i].slots = make_slots(parameters_[i].variable.value());
    has_slots_ = true;
  }
  return entries_;
}

Tensor Optimizer::ScaledGradient::scaled() const { return factor == 1 ? unscaled : unscaled * factor; }

// The joint norm of all gradients; one that is finite tells that they all are.
double Optimizer::checked_norm() const {
  const double norm = grad_norm(parameters_);
  if (std::isfinite(norm)) return norm;
  for (const NamedParameter& parameter : parameters_) {
    const Tensor gradient = parameter.variable.grad();
    check<NonFiniteError>(!gradient.defined() || all_finite(gradient), "Optimizer",
                          "gradients must be finite: got NaN or infinity in '{}'", parameter.name);
  }
  return norm;  // of doubles near the largest
}

double Optimizer::step(double lr, const StepLimits& limits) {
  check<ValueError>(std::isfinite(lr) && lr >= 0, "Optimizer", "rate must be finite and >= 0: got {}", lr);
  check<ValueError>(limits.clip_norm > 0, "Optimizer", "clip_norm must be > 0: got {}", limits.clip_norm);
  const double norm = checked_norm();
  const double factor = clip_factor(norm, limits.clip_norm);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = parameters_[i].variable.grad();
    if (!gradient.defined()) continue;
    Entry& entry = entries()[i];
    const ParameterGroup& group = groups_[entry.group];
    Tensor value = parameters_[i].variable.value();
    const int64_t number = ++*entry.updates.mutable_data<int64_t>();
    update(value, {.unscaled = gradient.contiguous(), .factor = factor}, entry.slots,
           {.lr = lr * group.lr_scale, .weight_decay = group.weight_decay, .number = number});
  }
  return norm;
}

void Optimizer::zero_grad() {
  for (NamedParameter& parameter : parameters_) parameter.variable.zero_grad();
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Entry& entry = entries()[i];
    const std::string& name = parameters_[i].name;
    for (const auto& [slot, tensor] : entry.slots) state.emplace_back(fmt::format("{}/{}", name, slot), tensor);
    state.emplace_back(fmt::format("{}/updates", name), entry.updates);
  }
  return state;
}

}  // namespace carousel
