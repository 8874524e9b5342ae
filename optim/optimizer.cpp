#include <carousel/optim/optimizer.h>

#include <carousel/tensor/compare.h>
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
  for (const Entry& entry : entries_) {
    const bool twice =
        entry.parameter.name == parameter.name || entry.parameter.variable.node() == parameter.variable.node();
    check<ValueError>(!twice, "Optimizer", "a parameter must be in one group, once: got '{}' and '{}'",
                      entry.parameter.name, parameter.name);
  }
  check<ValueError>(parameter.variable.value().is_contiguous(), "Optimizer",
                    "parameters must be row-major in memory: got '{}', which is not", parameter.name);
  entries_.push_back({.parameter = parameter, .group = group, .updates = zeros({}, DType::int64), .slots = {}});
}

std::vector<Optimizer::Entry>& Optimizer::entries() const {
  if (!has_slots_) {
    for (Entry& entry : entries_) entry.slots = make_slots(entry.parameter.variable.value());
    has_slots_ = true;
  }
  return entries_;
}

void Optimizer::step(double lr) {
  check<ValueError>(std::isfinite(lr) && lr >= 0, "Optimizer", "rate must be finite and >= 0: got {}", lr);
  for (const Entry& entry : entries()) {
    const Tensor gradient = entry.parameter.variable.grad();
    check<ValueError>(!gradient.defined() || all_finite(gradient), "Optimizer",
                      "gradients must be finite: got NaN or infinity in '{}'", entry.parameter.name);
  }
  for (Entry& entry : entries()) {
    const Tensor gradient = entry.parameter.variable.grad();
    if (!gradient.defined()) continue;
    const ParameterGroup& group = groups_[entry.group];
    Tensor value = entry.parameter.variable.value();
    const int64_t number = ++*entry.updates.mutable_data<int64_t>();
    update(value, gradient.contiguous(), entry.slots,
           {.lr = lr * group.lr_scale, .weight_decay = group.weight_decay, .number = number});
  }
}

void Optimizer::zero_grad() {
  for (Entry& entry : entries_) entry.parameter.variable.zero_grad();
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> state;
  for (const Entry& entry : entries()) {
    for (const auto& [name, tensor] : entry.slots) state.emplace_back(entry.parameter.name + "/" + name, tensor);
    state.emplace_back(entry.parameter.name + "/updates", entry.updates);
  }
  return state;
}

}  // namespace carousel
