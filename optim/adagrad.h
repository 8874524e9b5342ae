#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct AdagradConfig {
  double eps = 1e-10;
  double weight_decay = 0;  ///< of matrices; 0 where groups are passed, which have their own
};

/// Adagrad (Duchi, Hazan, Singer 2011), as in PyTorch without decay of the rate:
///   g <- g + decay w;  v <- v + g^2;  w <- w - lr g / (sqrt(v) + eps).
/// min-char-rnn has lr g / sqrt(v + 1e-8) instead, epsilon inside the root: the same but where |g| has stayed below
/// about 1e-3, and there its first moves are shorter (at g = 1e-4, 0.71 lr instead of lr).
class Adagrad : public Optimizer {
 public:
  /// Throws ValueError for eps <= 0, and what Optimizer refuses.
  Adagrad(const std::vector<NamedParameter>& parameters, const AdagradConfig& config);
  /// The same, and for a config.weight_decay besides the groups' own.
  Adagrad(std::vector<ParameterGroup> groups, const AdagradConfig& config);

 protected:
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const override;

 private:
  void check_config() const;

  AdagradConfig config_;
};

}  // namespace carousel
