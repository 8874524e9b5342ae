#include <carousel/optim/adam.h>

#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/adam.h>

#include <cmath>

namespace carousel {
namespace {

bool is_beta(double beta) { return beta >= 0 && beta < 1; }

}  // namespace

Adam::Adam(const std::vector<NamedParameter>& parameters, const AdamConfig& config)
    : Adam(split_by_decay(parameters, config.weight_decay), config, Decay::coupled) {}

Adam::Adam(std::vector<ParameterGroup> groups, const AdamConfig& config)
    : Adam(with_own_decay(std::move(groups), config.weight_decay), config, Decay::coupled) {}

Adam::Adam(std::vector<ParameterGroup> groups, const AdamConfig& config, Decay decay)
    : Optimizer(std::move(groups)), config_(config), decay_(decay) {
  check<ValueError>(is_beta(config.beta1) && is_beta(config.beta2), "Adam", "betas must be in [0, 1): got {} and {}",
                    config.beta1, config.beta2);
  check<ValueError>(std::isfinite(config.eps) && config.eps > 0, "Adam", "eps must be finite and > 0: got {}",
                    config.eps);
}

Optimizer::Slots Adam::make_slots(const Tensor& parameter) const {
  return {{"m", zeros_like(parameter)}, {"v", zeros_like(parameter)}};
}

void Adam::update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const {
  const kernels::AdamStep constants{.lr = update.lr,
                                    .beta1 = config_.beta1,
                                    .beta2 = config_.beta2,
                                    .eps = config_.eps,
                                    .weight_decay = update.weight_decay,
                                    .decoupled = decay_ == Decay::decoupled,
                                    .step = update.number,
                                    .gradient_factor = gradient.factor};
  dispatch_floating("Adam", parameter.dtype(), [&](auto type) {
    using T = decltype(type);
    kernels::adam(parameter.numel(), constants, gradient.unscaled.data<T>(), parameter.mutable_data<T>(),
                  slots[0].second.mutable_data<T>(), slots[1].second.mutable_data<T>());
  });
}

AdamW::AdamW(const std::vector<NamedParameter>& parameters, const AdamConfig& config)
    : Adam(split_by_decay(parameters, config.weight_decay), config, Decay::decoupled) {}

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamConfig& config)
    : Adam(with_own_decay(std::move(groups), config.weight_decay), config, Decay::decoupled) {}

}  // namespace carousel
