#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct RmspropConfig {
  double alpha = 0.99;  ///< how much of the mean square stays at each step; char-rnn's decay_rate is 0.95
  double eps = 1e-8;
  double momentum = 0;
  double weight_decay = 0;  ///< of matrices; 0 where groups are passed, which have their own
};

/// RMSprop (Hinton, Neural Networks for Machine Learning, lecture 6e, 2012), as in PyTorch and char-rnn:
///   g <- g + decay w;  v <- alpha v + (1 - alpha) g^2;  d = g / (sqrt(v) + eps);
///   without momentum w <- w - lr d, with it u <- momentum u + d, w <- w - lr u.
/// v begins at 0 and is not corrected for that: the first move is up to lr / sqrt(1 - alpha).
class Rmsprop : public Optimizer {
 public:
  /// Throws ValueError for alpha or momentum outside [0, 1), eps <= 0, and what Optimizer refuses.
  Rmsprop(const std::vector<NamedParameter>& parameters, const RmspropConfig& config);
  /// The same, and for a config.weight_decay besides the groups' own.
  Rmsprop(std::vector<ParameterGroup> groups, const RmspropConfig& config);

 protected:
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const override;

 private:
  void check_config() const;

  RmspropConfig config_;
};

}  // namespace carousel
