#pragma once

#include <carousel/nn/module.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace carousel {

/// Parameters that are updated alike.
struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  double weight_decay = 0;  ///< of all of them, whatever NamedParameter::decay says
  double lr_scale = 1;      ///< times the rate of a step
};

/// Two groups: the parameters that may be decayed (matrices), with `weight_decay`, and the others, with none.
std::vector<ParameterGroup> split_by_decay(const std::vector<NamedParameter>& parameters, double weight_decay);

/// What a step may be told besides its rate.
struct StepLimits {
  /// The joint 2-norm of all gradients that this step uses is at most this, as if clip_grad_norm had been called
  /// for the parameters in the optimiser's order: the same bits without its pass over memory, and the gradients stay as
  /// they are. Infinity: no clipping.
  double clip_norm = std::numeric_limits<double>::infinity();
};

/// Updates parameters in place from their gradients. A subclass writes two hooks: the state of one parameter and the
/// update of one parameter. The rate is an argument of every step: schedules are functions, not hidden state.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One update with rate `lr` (finite, >= 0); returns the joint 2-norm of the gradients, from before clipping.
  /// Parameters without a gradient are left alone. Throws, before anything changes,
  /// NonFiniteError naming a parameter whose gradient is not finite, and ValueError for a clip_norm that is not
  /// positive.
  double step(double lr, const StepLimits& limits = {});
  void zero_grad();

  /// As they were passed in; every parameter is in exactly one.
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// What a resumed run needs besides the parameters: tensors by "parameter/moment", and "parameter/updates", int64 [],
  /// in a fixed order. They share the optimiser's memory, so that loading is copying into them.
  std::vector<std::pair<std::string, Tensor>> state() const;

 protected:
  using Slots = std::vector<std::pair<std::string, Tensor>>;  // state of one parameter, by name

  /// A parameter's gradient, to be multiplied by `factor` on the way: where clipping comes in.
  struct ScaledGradient {
    Tensor unscaled;  ///< row-major
    double factor;
    Tensor scaled() const;  ///< the product, for an update that does not multiply by itself
  };

  /// What one update is told besides the numbers.
  struct Update {
    double lr;
    double weight_decay;
    int64_t number;  ///< of this parameter's updates, from 1: those that it was left out of do not count
  };

  /// Throws ValueError for no parameters, one that is there twice, and a decay or scale that is negative or not finite.
  explicit Optimizer(std::vector<ParameterGroup> groups);
  /// `groups`, for a constructor that takes them and a configuration: throws ValueError unless the latter's decay is 0,
  /// since there must be one place that says it.
  static std::vector<ParameterGroup> with_own_decay(std::vector<ParameterGroup> groups, double configured);
  virtual Slots make_slots(const Tensor& parameter) const = 0;
  /// The parameter is row-major.
  virtual void update(Tensor& parameter, const ScaledGradient& gradient, Slots& slots, const Update& update) const = 0;

 private:
  struct Entry {
    size_t group;
    Tensor updates;  // int64 []: made so far
    Slots slots;
  };
  void add(const NamedParameter& parameter, size_t group);
  double checked_norm() const;
  std::vector<Entry>& entries() const;

  std::vector<ParameterGroup> groups_;
  std::vector<NamedParameter> parameters_;  // of all groups, an entry each
  mutable std::vector<Entry> entries_;
  mutable bool has_slots_ = false;  // they are made on first use: a constructor cannot call the hook
};

}  // namespace carousel
