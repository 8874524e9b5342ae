#pragma once

#include <carousel/autograd/record.h>

#include <utility>

namespace carousel {

/// Which output of which node a gradient goes to.
struct Edge {
  std::shared_ptr<Node> node;
  uint32_t output = 0;
};

/// One recorded operation, or a leaf. Nodes are numbered as they are made, so the largest number first is a
/// topological order: backward needs no recursion and no counting of dependents.
class Node {
 public:
  /// What a user asked of one result's gradient.
  struct Watch {
    Tensor grad;  // what backward left here
    bool keep = false;
    std::vector<GradientHook> hooks;
  };
  /// One result: what its gradient must look like, and who watches it.
  struct Output {
    Shape shape;
    DType dtype;
    std::unique_ptr<Watch> watch;
  };

  Node(Op op, std::vector<Edge> parents, BackwardMany backward);
  ~Node();  // frees the graph behind it with an explicit stack
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  uint64_t number() const { return number_; }
  bool is_leaf() const { return op_ == Op::leaf; }
  const std::vector<Edge>& parents() const { return parents_; }
  std::vector<Output>& outputs() { return outputs_; }
  void add_output(const Tensor& value);
  Watch& watch(uint32_t output);  // made on first use
  void set_remake(Remake remake) { remake_ = std::move(remake); }
  const Remake& remake() const { return remake_; }

  /// The gradients of the parents; throws ValueError when an earlier backward has freed this node.
  Gradients run_backward(std::span<const Tensor> cotangents) const;
  /// Drops the closures, what they saved, and the parents: backward has passed here.
  void release();

 private:
  Op op_;
  bool released_ = false;
  uint64_t number_;
  std::vector<Edge> parents_;
  std::vector<Output> outputs_;
  BackwardMany backward_;
  Remake remake_;
};

/// The operation whose backward is running in this thread; Op::count when none. For error texts.
Op running_backward();

/// Throws ValueError `[anomaly] WHAT OP holds a NaN` when the mode is on and `value` holds a NaN or an infinity.
void check_anomaly(std::string_view what, Op op, const Tensor& value);
void check_anomaly(std::string_view what, Op op, const Gradient& gradient);

}  // namespace carousel
