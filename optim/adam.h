#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct AdamConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  ///< Adam adds it to the gradient; AdamW takes lr * decay * w off the weight
  bool decoupled = false;   ///< AdamW (Loshchilov, Hutter 2019)
};

/// Adam (Kingma, Ba 2015): m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
/// w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps): epsilon outside the root, after bias correction.
class Adam : public Optimizer {
 public:
  Adam(std::vector<NamedParameter> parameters, const AdamConfig& config);

 protected:
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const Tensor& gradient, Slots& slots, double lr, double weight_decay,
              int64_t step) const override;

 private:
  AdamConfig config_;
};

/// Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  AdamW(std::vector<NamedParameter> parameters, AdamConfig config);
};

}  // namespace carousel
