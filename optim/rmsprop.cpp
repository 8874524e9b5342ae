#include <carousel/optim/rmsprop.h>

#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/root_step.h>

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
  const kernels::RootStep constants{.lr = update.lr,
                                    .keep = config_.alpha,
                                    .add = 1 - config_.alpha,
                                    .eps = config_.eps,
                                    .momentum = config_.momentum,
                                    .weight_decay = update.weight_decay,
                                    .gradient_factor = gradient.factor};
  dispatch_floating("Rmsprop", parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    T* const velocity = config_.momentum > 0 ? slots[1].second.mutable_data<T>() : nullptr;
    kernels::root_step(parameter.numel(), constants, gradient.unscaled.data<T>(), parameter.mutable_data<T>(),
                       slots[0].second.mutable_data<T>(), velocity);
  });
}

}  // namespace carousel
