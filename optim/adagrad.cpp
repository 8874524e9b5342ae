#include <carousel/optim/adagrad.h>

#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/root_step.h>

#include <cmath>

namespace carousel {

Adagrad::Adagrad(const std::vector<NamedParameter>& parameters, const AdagradConfig& config)
    : Optimizer(split_by_decay(parameters, config.weight_decay)), config_(config) {
  check_config();
}

Adagrad::Adagrad(std::vector<ParameterGroup> groups, const AdagradConfig& config)
    : Optimizer(with_own_decay(std::move(groups), config.weight_decay)), config_(config) {
  check_config();
}

void Adagrad::check_config() const {
  check<ValueError>(std::isfinite(config_.eps) && config_.eps > 0, "Adagrad", "eps must be finite and > 0: got {}",
                    config_.eps);
}

Optimizer::Slots Adagrad::make_slots(const Tensor& parameter) const {
  return {{"sum_of_squares", zeros_like(parameter)}};
}

void Adagrad::update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const {
  const kernels::RootStep constants{.lr = update.lr,
                                    .keep = 1,
                                    .add = 1,
                                    .eps = config_.eps,
                                    .weight_decay = update.weight_decay,
                                    .gradient_factor = gradient.factor};
  dispatch_floating("Adagrad", parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    kernels::root_step(parameter.numel(), constants, gradient.unscaled.data<T>(), parameter.mutable_data<T>(),
                       slots.front().second.mutable_data<T>(), static_cast<T*>(nullptr));
  });
}

}  // namespace carousel
