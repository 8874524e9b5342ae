#pragma once

#include <carousel/nn/module.h>

#include <string>
#include <utility>
#include <vector>

namespace carousel {

/// Parameters that share a weight decay.
struct ParameterGroup {
  std::vector<std::string> names;
  double weight_decay = 0;
};

/// Updates parameters in place from their gradients. A subclass writes two hooks: the state of one parameter and the
/// update of one parameter. The rate is an argument of every step: schedules are functions, not hidden state.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update with rate `lr` (finite, >= 0). Parameters without a gradient are left alone. Throws ValueError naming
  /// a parameter whose gradient is not finite, before anything changes.
  void step(double lr);
  void zero_grad();

  int64_t steps() const { return steps_; }  ///< updates made so far
  /// Decayed parameters (matrices) and the others; every parameter is in exactly one.
  std::vector<ParameterGroup> groups() const;

  /// What a resumed run needs besides the parameters: tensors by "parameter/moment", in a fixed order. They share the
  /// optimiser's memory, so that loading is copying into them. The step count is apart.
  std::vector<std::pair<std::string, Tensor>> state() const;
  void set_steps(int64_t steps);  ///< throws ValueError when negative

 protected:
  using Slots = std::vector<std::pair<std::string, Tensor>>;  // state of one parameter, by name

  /// Throws ValueError for no parameters, a name used twice, a negative weight decay.
  Optimizer(std::vector<NamedParameter> parameters, double weight_decay);
  virtual Slots make_slots(const Tensor& parameter) const = 0;
  /// `step` counts from 1; `weight_decay` is 0 for parameters that are not decayed. Parameter and gradient are
  /// row-major.
  virtual void update(Tensor& parameter, const Tensor& gradient, Slots& slots, double lr, double weight_decay,
                      int64_t step) const = 0;

 private:
  std::vector<Slots>& slots() const;
  std::vector<NamedParameter> parameters_;
  mutable std::vector<Slots> slots_;  // made on first use: a constructor cannot call the hook
  double weight_decay_;
  int64_t steps_ = 0;
};

}  // namespace carousel
