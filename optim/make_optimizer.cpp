#include <carousel/nn/fields.h>
#include <carousel/optim/adagrad.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/make_optimizer.h>
#include <carousel/optim/rmsprop.h>
#include <carousel/optim/sgd.h>

namespace carousel {
namespace {

using Parameters = std::vector<NamedParameter>;
using Made = std::unique_ptr<Optimizer>;

struct Kind {
  std::string name;
  Made (*make)(const Parameters& parameters, const OptimizerConfig& config);
};

template <class Adam>
Made make_adam(const Parameters& parameters, const OptimizerConfig& config) {
  AdamConfig own{.beta1 = config.beta1, .beta2 = config.beta2, .weight_decay = config.weight_decay};
  own.eps = config.eps.value_or(own.eps);
  return std::make_unique<Adam>(parameters, own);
}

Made make_sgd(const Parameters& parameters, const OptimizerConfig& config) {
  return std::make_unique<Sgd>(
      parameters,
      SgdConfig{.momentum = config.momentum, .nesterov = config.nesterov, .weight_decay = config.weight_decay});
}

Made make_rmsprop(const Parameters& parameters, const OptimizerConfig& config) {
  RmspropConfig own{.alpha = config.alpha, .momentum = config.momentum, .weight_decay = config.weight_decay};
  own.eps = config.eps.value_or(own.eps);
  return std::make_unique<Rmsprop>(parameters, own);
}

Made make_adagrad(const Parameters& parameters, const OptimizerConfig& config) {
  AdagradConfig own{.weight_decay = config.weight_decay};
  own.eps = config.eps.value_or(own.eps);
  return std::make_unique<Adagrad>(parameters, own);
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"adamw", make_adam<AdamW>},
                                        {"adam", make_adam<Adam>},
                                        {"sgd", make_sgd},
                                        {"rmsprop", make_rmsprop},
                                        {"adagrad", make_adagrad}};
  return all;
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kinds()) all.push_back(kind.name);
    return all;
  }();
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const std::vector<NamedParameter>& parameters,
                                          const OptimizerConfig& config) {
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind.make(parameters, config);
  }
  throw ValueError(fmt::format("[make_optimizer] {}", unknown_name("the optimiser", name, optimizer_names())));
}

}  // namespace carousel
