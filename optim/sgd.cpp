#include <carousel/optim/sgd.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {

Sgd::Sgd(std::vector<NamedParameter> parameters, const SgdConfig& config)
    : Optimizer(std::move(parameters), config.weight_decay), config_(config) {
  check<ValueError>(config.momentum >= 0 && config.momentum < 1, "Sgd", "momentum must be in [0, 1): got {}",
                    config.momentum);
  check<ValueError>(!config.nesterov || config.momentum > 0, "Sgd", "nesterov needs a momentum: got {}",
                    config.momentum);
}

Optimizer::Slots Sgd::make_slots(const Tensor& parameter) const {
  if (config_.momentum == 0) {
    return {};
  }
  return {{"velocity", zeros_like(parameter)}};
}

void Sgd::update(Tensor& parameter, const Tensor& gradient, Slots& slots, double lr, double weight_decay,
                 int64_t) const {
  Tensor direction = weight_decay == 0 ? gradient : gradient + parameter * weight_decay;
  if (config_.momentum > 0) {
    Tensor& velocity = slots.front().second;
    mul_(velocity, config_.momentum);
    add_(velocity, direction);
    direction = config_.nesterov ? direction + velocity * config_.momentum : velocity;
  }
  sub_(parameter, direction * lr);
}

}  // namespace carousel
