#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct AdamConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  ///< of matrices; 0 where groups are passed, which have their own
};

/// Adam (Kingma, Ba 2015): g <- g + decay w;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
/// w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps): epsilon outside the root, after bias correction. t
/// counts the updates of each parameter: one whose first gradient comes late starts then.
class Adam : public Optimizer {
 public:
  /// Throws ValueError for betas outside [0, 1), eps <= 0, and what Optimizer refuses.
  Adam(const std::vector<NamedParameter>& parameters, const AdamConfig& config);
  /// The same, and for a config.weight_decay besides the groups' own.
  Adam(std::vector<ParameterGroup> groups, const AdamConfig& config);

 protected:
  enum class Decay { coupled, decoupled };  // through the gradient, or off the weight itself
  Adam(std::vector<ParameterGroup> groups, const AdamConfig& config, Decay decay);
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const override;

 private:
  AdamConfig config_;
  Decay decay_;
};

/// Adam with decoupled weight decay (Loshchilov, Hutter 2019): w <- w - lr decay w instead of g <- g + decay w.
class AdamW : public Adam {
 public:
  AdamW(const std::vector<NamedParameter>& parameters, const AdamConfig& config);
  AdamW(std::vector<ParameterGroup> groups, const AdamConfig& config);
};

}  // namespace carousel
