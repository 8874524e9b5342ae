#pragma once

#include <carousel/autograd/op.h>
#include <carousel/tensor/tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace carousel {

class Node;

/// Called with a variable's finished gradient during backward. What it returns replaces that gradient; an undefined
/// Tensor leaves it. The gradient shown may be shared with other variables: changing it in place is a ValueError.
using GradientHook = std::function<Tensor(const Tensor& gradient)>;

struct BackwardOptions {
  bool retain_graph = false;  ///< keep what backward needs, so that it can run again
};

/// A Tensor and where it came from. Copies are handles on the same value and the same gradient. Operations on
/// Variables record how to differentiate themselves when an input requires a gradient; operations on Tensors never
/// do.
class Variable {
 public:
  Variable() = default;
  Variable(Tensor value);                   // NOLINT: a Tensor is a Variable without history
  static Variable parameter(Tensor value);  ///< a leaf that requires a gradient; throws ValueError unless floating

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  int64_t size(int64_t axis) const { return value_.size(axis); }
  int rank() const { return value_.rank(); }
  DType dtype() const { return value_.dtype(); }
  bool requires_grad() const { return node_ != nullptr; }
  bool is_leaf() const;
  Op op() const;  ///< the operation that made it; Op::leaf for leaves and for values without history

  /// The gradient that backward left here: undefined before the first one. On leaves, and on intermediates after
  /// retain_grad(). Gradients of several backward calls add up until zero_grad().
  Tensor grad() const;
  void set_grad(Tensor gradient);  ///< throws ShapeError, ValueError unless shape and dtype are the variable's
  void zero_grad();                ///< makes the gradient undefined again
  void retain_grad();              ///< keep the gradient of an intermediate; throws ValueError without history
  void add_hook(GradientHook hook);

  /// The same value without history: where truncated backpropagation through time cuts.
  Variable detach() const { return Variable(value_); }

  /// Adds d this / d leaf to every leaf's gradient. Without `cotangent` the variable must be a scalar (one element).
  /// Throws ValueError when the variable has no history, when the graph behind it was freed by an earlier backward,
  /// or when a saved value was changed in place since; then no gradient has changed. Graphs that share leaves may run
  /// backward in several threads; one graph, in one thread at a time.
  void backward(BackwardOptions options = {}) const;
  void backward(const Tensor& cotangent, BackwardOptions options = {}) const;

  // For operations (autograd/record.h); a reader of the library never needs them.
  Variable(Tensor value, std::shared_ptr<Node> node, uint32_t output);
  const std::shared_ptr<Node>& node() const { return node_; }
  uint32_t output() const { return output_; }

 private:
  Tensor value_;
  std::shared_ptr<Node> node_;
  uint32_t output_ = 0;
};

using Variables = std::vector<Variable>;

/// While one lives, its thread records nothing: evaluation and sampling.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
bool grad_enabled();

/// While one lives, its thread checks every result and every gradient, and throws ValueError naming the operation
/// that first made a NaN or an infinity, forward or backward.
class AnomalyMode {
 public:
  AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  bool before_;
};

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;  ///< second derivatives: not supported, a ValueError says so
};

/// d output / d inputs, returned instead of accumulated: no leaf's gradient changes. An input that the output does
/// not depend on gets an undefined Tensor. `cotangent` may be undefined for a scalar output.
std::vector<Tensor> grad(const Variable& output, std::span<const Variable> inputs, const Tensor& cotangent = {},
                         GradOptions options = {});

/// Nodes of recorded operations alive in the process: zero when every graph has been freed.
int64_t live_nodes();

}  // namespace carousel
