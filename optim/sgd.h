#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct SgdConfig {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  ///< of matrices; 0 where groups are passed, which have their own
};

/// v <- momentum v + g + decay w;  w <- w - lr v  (Nesterov: w <- w - lr (g + decay w + momentum v)), as in PyTorch.
class Sgd : public Optimizer {
 public:
  /// Throws ValueError for a momentum outside [0, 1), Nesterov without one, and what Optimizer refuses.
  Sgd(const std::vector<NamedParameter>& parameters, const SgdConfig& config);
  /// The same, and for a config.weight_decay besides the groups' own.
  Sgd(std::vector<ParameterGroup> groups, const SgdConfig& config);

 protected:
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const override;

 private:
  void check_config() const;

  SgdConfig config_;
};

}  // namespace carousel
