#pragma once

#include <carousel/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carousel {

/// What the optimisers may be told, for programs that choose one by name. Each reads what its formula has, and leaves
/// the rest.
struct OptimizerConfig {
  double weight_decay = 0;         ///< of matrices; "adamw" takes it off the weight, the others add it to the gradient
  double beta1 = 0.9;              ///< "adam", "adamw"
  double beta2 = 0.999;            ///< "adam", "adamw"
  double alpha = 0.99;             ///< "rmsprop"
  double momentum = 0;             ///< "sgd", "rmsprop"
  bool nesterov = false;           ///< "sgd"
  std::optional<double> eps = {};  ///< of all but "sgd"; unless set, the optimiser's own
};

/// "adamw", "adam", "sgd", "rmsprop", "adagrad".
const std::vector<std::string>& optimizer_names();

/// The optimiser of that name for the parameters. Throws ValueError listing the names, with the nearest one, when there
/// is no such optimiser, and what its constructor throws.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const std::vector<NamedParameter>& parameters,
                                          const OptimizerConfig& config = {});

}  // namespace carousel
