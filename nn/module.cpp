#include <carousel/nn/module.h>

#include <algorithm>

namespace carousel {
namespace {

template <class Entries>
bool holds(const Entries& entries, const std::string& name) {
  return std::any_of(entries.begin(), entries.end(), [&name](const auto& entry) { return entry.name == name; });
}

void check_name(const std::string& name, bool taken) {
  check<ValueError>(!name.empty() && name.find('.') == std::string::npos, "Module",
                    "a name must not be empty or hold a dot: got '{}'", name);
  check<ValueError>(!taken, "Module", "a name must be used once: got '{}' again", name);
}

}  // namespace

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;
  collect("", parameters, buffers);
  return parameters;
}

std::vector<NamedBuffer> Module::buffers() const {
  std::vector<NamedParameter> parameters;
  std::vector<NamedBuffer> buffers;
  collect("", parameters, buffers);
  return buffers;
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& parameters,
                     std::vector<NamedBuffer>& buffers) const {
  for (const NamedParameter& own : parameters_) parameters.push_back({prefix + own.name, own.variable, own.decay});
  for (const NamedBuffer& own : buffers_) buffers.push_back({prefix + own.name, own.tensor});
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", parameters, buffers);
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : parameters()) count += parameter.variable.value().numel();
  return count;
}

void Module::zero_grad() {
  for (NamedParameter& parameter : parameters()) parameter.variable.zero_grad();
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

Variable Module::add_parameter(std::string name, Tensor value, Decay decay) {
  check_name(name, holds(parameters_, name) || holds(buffers_, name));
  Variable variable = Variable::parameter(std::move(value));
  parameters_.push_back({std::move(name), variable, decay == Decay::yes});
  return variable;
}

Tensor Module::add_buffer(std::string name, Tensor value) {
  check_name(name, holds(parameters_, name) || holds(buffers_, name));
  buffers_.push_back({std::move(name), value});
  return value;
}

void Module::add_child(std::string name, Module& child) {
  const bool taken =
      std::any_of(children_.begin(), children_.end(), [&name](const auto& entry) { return entry.first == name; });
  check<ValueError>(!taken, "Module", "a name must be used once: got '{}' again", name);
  children_.emplace_back(std::move(name), &child);
}

}  // namespace carousel
