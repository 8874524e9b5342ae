#include <carousel/optim/adagrad.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

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
  const Tensor direction = with_decay(gradient, parameter, update);
  Tensor& sum_of_squares = slots.front().second;
  add_(sum_of_squares, square(direction));
  sub_(parameter, direction / (sqrt(sum_of_squares) + config_.eps) * update.lr);
}

}  // namespace carousel
