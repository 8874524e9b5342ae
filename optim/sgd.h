#pragma once

#include <carousel/optim/optimizer.h>

namespace carousel {

struct SgdConfig {
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// v <- momentum v + g + decay w;  w <- w - lr v  (Nesterov: w <- w - lr (g + decay w + momentum v)), as in PyTorch.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<NamedParameter> parameters, const SgdConfig& config);

 protected:
  Slots make_slots(const Tensor& parameter) const override;
  void update(Tensor& parameter, const Tensor& gradient, Slots& slots, double lr, double weight_decay,
              int64_t step) const override;

 private:
  SgdConfig config_;
};

}  // namespace carousel
