#include <carousel/autograd/node.h>
#include <carousel/autograd/variable.h>
#include <carousel/tensor/factory.h>

#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace carousel {
namespace {

// A gradient under construction.
struct Gathered {
  Tensor sum;
  bool ours = false;  // the first part is taken as it is, and may be shared; the sum of two is not

  bool can_grow() const { return ours || (sum.storage().use_count() == 1 && sum.is_contiguous()); }
};

// Adds `gradient` to `total`: the one place in the library where gradients are accumulated.
void accumulate(Gathered& total, const Gradient& gradient, const Node::Output& target, Op op) {
  check<ShapeError>(gradient.shape() == target.shape, to_string(op),
                    "a gradient must have the shape of its value: got {} and {}", to_string(gradient.shape()),
                    to_string(target.shape));
  check<ValueError>(gradient.dtype() == target.dtype, to_string(op),
                    "a gradient must have the dtype of its value: got {} and {}", to_string(gradient.dtype()),
                    to_string(target.dtype));
  if (!total.sum.defined()) {
    total.sum = gradient.value();
  } else if (total.can_grow()) {
    gradient.add_to(total.sum);
  } else {
    total = {gradient.added_to(total.sum), true};
  }
}

// The tensor itself when nobody else holds its memory, else a copy: a gradient that a user may change in place. A small
// view of a large block is copied too, so that it does not keep the block alive.
Tensor owned(const Tensor& gradient) {
  const size_t needed = gradient.numel() * size_of(gradient.dtype());
  const bool alone =
      gradient.storage().use_count() == 1 && gradient.is_contiguous() && gradient.storage()->bytes() <= 2 * needed + 64;
  return alone ? gradient : gradient.clone();
}

// One walk from a result back to the leaves.
class Walk {
 public:
  void deliver(const Edge& to, const Gradient& gradient, Op from) {
    Pending& pending = queue_[to.node->number()];
    if (!pending.node) {
      pending.node = to.node;
      pending.gradients.resize(to.node->outputs().size());
    }
    accumulate(pending.gradients[to.output], gradient, to.node->outputs()[to.output], from);
  }

  // Visits nodes from the result to the leaves. No variable's gradient changes before the whole walk has succeeded; the
  // watched ones are gathered in `take_finished`.
  void run(bool retain_graph) {
    while (!queue_.empty()) {
      Pending pending = std::move(queue_.extract(queue_.begin()).mapped());
      const std::vector<Tensor> cotangents = call_hooks(pending);
      Node& node = *pending.node;
      if (node.is_leaf()) continue;
      if (node.is_forgotten()) {
        go_on_in(node.make_again(), cotangents, node.op());
      } else {
        visit(node, cotangents);
      }
      if (!retain_graph) node.release();
    }
  }

  struct Finished {
    Edge at;
    Tensor gradient;
  };
  std::vector<Finished> take_finished() { return std::move(finished_); }
  void watch_also(const Edge& edge) { wanted_.push_back(edge); }

 private:
  struct Pending {
    std::shared_ptr<Node> node;
    std::vector<Gathered> gradients;  // one for each output
  };

  std::vector<Tensor> call_hooks(Pending& pending) {
    std::vector<Tensor> cotangents;
    for (uint32_t i = 0; i < pending.gradients.size(); ++i) {
      Tensor gradient = std::move(pending.gradients[i].sum);
      const Node::Output& output = pending.node->outputs()[i];
      if (gradient.defined() && output.watch) gradient = hooked(gradient, output, pending.node->op());
      if (gradient.defined() && is_wanted(pending.node, i)) finished_.push_back({{pending.node, i}, gradient});
      cotangents.push_back(std::move(gradient));
    }
    return cotangents;
  }

  // The gradient that the hooks of an output make of `gradient`. By index and by copy: a hook may add another.
  static Tensor hooked(Tensor gradient, const Node::Output& output, Op op) {
    const std::vector<GradientHook>& hooks = output.watch->hooks;
    for (size_t i = 0; i < hooks.size(); ++i) {
      const GradientHook hook = hooks[i];
      const uint64_t version = gradient.version();
      Tensor replaced = hook(gradient);
      check<ValueError>(gradient.version() == version, "hook",
                        "a hook must not change its gradient in place, which others may share: return a new one");
      if (!replaced.defined()) continue;
      Gathered checked;
      accumulate(checked, replaced, output, op);
      check_anomaly("a hook's gradient of", op, replaced);
      gradient = std::move(replaced);
    }
    return gradient;
  }

  bool is_wanted(const std::shared_ptr<Node>& node, uint32_t output) const {
    for (const Edge& edge : wanted_) {
      if (edge.node == node && edge.output == output) return true;
    }
    const auto& watch = node->outputs()[output].watch;
    return watch && watch->keep;
  }

  void visit(const Node& node, const std::vector<Tensor>& cotangents) {
    const Gradients gradients = node.run_backward(cotangents);
    check<ValueError>(gradients.size() == node.parents().size(), to_string(node.op()),
                      "backward must give one gradient per input: got {} for {}", gradients.size(),
                      node.parents().size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Edge& parent = node.parents()[i];
      if (!parent.node || !gradients[i].defined()) continue;
      check_anomaly("a gradient from the backward of", node.op(), gradients[i]);
      deliver(parent, gradients[i], node.op());
    }
  }

  // What is made again has the largest numbers of all: its nodes come next, in the order in which those that were
  // forgotten would have come.
  void go_on_in(const Variables& results, const std::vector<Tensor>& cotangents, Op op) {
    for (size_t i = 0; i < results.size(); ++i) {
      if (!cotangents[i].defined()) continue;
      check<ValueError>(results[i].requires_grad(), to_string(op),
                        "the function must do the same each time: result {} has no history any more", i);
      deliver({results[i].node(), results[i].output()}, cotangents[i], op);
    }
  }

  std::map<uint64_t, Pending, std::greater<>> queue_;  // by node number, the largest first
  std::vector<Edge> wanted_;
  std::vector<Finished> finished_;
};

Tensor seed_of(std::string_view operation, const Variable& output, const Tensor& cotangent) {
  check<ValueError>(output.requires_grad(), operation,
                    "the variable must depend on something that requires a gradient: it has no history "
                    "(recorded under NoGrad, detached, or a gradient itself; gradients are of first order)");
  if (cotangent.defined()) {
    check_anomaly("the cotangent given to", output.op(), cotangent);
    return cotangent;
  }
  check<ShapeError>(output.value().numel() == 1, operation,
                    "without a cotangent the variable must be a scalar: got shape {}", to_string(output.shape()));
  return ones(output.shape(), output.dtype());
}

}  // namespace

void Variable::backward(BackwardOptions options) const { backward(Tensor(), options); }

void Variable::backward(const Tensor& cotangent, BackwardOptions options) const {
  Walk walk;
  walk.deliver({node_, output_}, seed_of("backward", *this, cotangent), Op::leaf);
  walk.run(options.retain_graph);
  static std::mutex publishing;  // graphs of several threads may share leaves
  const std::lock_guard lock(publishing);
  for (auto& [at, gradient] : walk.take_finished()) {
    Node::Watch& watch = at.node->watch(at.output);
    Gathered total{std::exchange(watch.grad, {})};
    accumulate(total, std::exchange(gradient, {}), at.node->outputs()[at.output], at.node->op());
    watch.grad = owned(total.sum);
  }
}

std::vector<Tensor> grad(const Variable& output, std::span<const Variable> inputs, const Tensor& cotangent,
                         GradOptions options) {
  check<ValueError>(!options.create_graph, "grad",
                    "second derivatives are not supported: gradients are of first order and have no history");
  Walk walk;
  for (const Variable& input : inputs) {
    check<ValueError>(input.requires_grad(), "grad", "every input must require a gradient");
    walk.watch_also({input.node(), input.output()});
  }
  walk.deliver({output.node(), output.output()}, seed_of("grad", output, cotangent), Op::leaf);
  walk.run(options.retain_graph);
  std::vector<Tensor> gradients(inputs.size());
  for (const auto& [at, gradient] : walk.take_finished()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].node() == at.node && inputs[i].output() == at.output) gradients[i] = owned(gradient);
    }
  }
  return gradients;
}

}  // namespace carousel
