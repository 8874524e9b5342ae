#include <carousel/optim/sgd.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {

Sgd::Sgd(const std::vector<NamedParameter>& parameters, const SgdConfig& config)
    : Optimizer(split_by_decay(parameters, config.weight_decay)), config_(config) {
  check_config();
}

Sgd::Sgd(std::vector<ParameterGroup> groups, const SgdConfig& config)
    : Optimizer(with_own_decay(std::move(groups), config.weight_decay)), config_(config) {
  check_config();
}

void Sgd::check_config() const {
  check<ValueError>(config_.momentum >= 0 && config_.momentum < 1, "Sgd", "momentum must be in [0, 1): got {}",
                    config_.momentum);
  check<ValueError>(!config_.nesterov || config_.momentum > 0, "Sgd", "nesterov needs a momentum: got {}",
                    config_.momentum);
}

Optimizer::Slots Sgd::make_slots(const Tensor& parameter) const {
  if (config_.momentum == 0) return {};
  return {{"velocity", zeros_like(parameter)}};
}

void Sgd::update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const {
  Tensor direction = gradient.scaled();
  if (update.weight_decay != 0) direction = direction + parameter * update.weight_decay;
  if (config_.momentum > 0) {
    Tensor& velocity = slots.front().second;
    mul_(velocity, config_.momentum);
    add_(velocity, direction);
    direction = config_.nesterov ? direction + velocity * config_.momentum : velocity;
  }
  sub_(parameter, direction * update.lr);
}

}  // namespace carousel
