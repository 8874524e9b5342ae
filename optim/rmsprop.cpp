#include <carousel/optim/rmsprop.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {

Rmsprop::Rmsprop(const std::vector<NamedParameter>& parameters, const RmspropConfig& config)
    : Optimizer(split_by_decay(parameters, config.weight_decay)), config_(config) {
  check_config();
}

Rmsprop::Rmsprop(std::vector<ParameterGroup> groups, const RmspropConfig& config)
    : Optimizer(with_own_decay(std::move(groups), config.weight_decay)), config_(config) {
  check_config();
}

void Rmsprop::check_config() const {
  check<ValueError>(config_.alpha >= 0 && config_.alpha < 1, "Rmsprop", "alpha must be in [0, 1): got {}",
                    config_.alpha);
  check<ValueError>(std::isfinite(config_.eps) && config_.eps > 0, "Rmsprop", "eps must be finite and > 0: got {}",
                    config_.eps);
  check<ValueError>(config_.momentum >= 0 && config_.momentum < 1, "Rmsprop", "momentum must be in [0, 1): got {}",
                    config_.momentum);
}

Optimizer::Slots Rmsprop::make_slots(const Tensor& parameter) const {
  Slots slots{{"mean_square", zeros_like(parameter)}};
  if (config_.momentum > 0) slots.emplace_back("velocity", zeros_like(parameter));
  return slots;
}

void Rmsprop::update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const {
  Tensor direction = with_decay(gradient, parameter, update);
  Tensor& mean_square = slots[0].second;
  mul_(mean_square, config_.alpha);
  add_(mean_square, square(direction) * (1 - config_.alpha));
  direction = direction / (sqrt(mean_square) + config_.eps);
  if (config_.momentum > 0) {
    Tensor& velocity = slots[1].second;
    mul_(velocity, config_.momentum);
    direction = add_(velocity, direction);
  }
  sub_(parameter, direction * update.lr);
}

}  // namespace carousel
