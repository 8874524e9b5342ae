#pragma once

#include <carousel/autograd/record.h>

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
  /// Everything about one result that outlives the result itself.
  struct Output {
    Shape shape;
    DType dtype;
    Tensor incoming;  // what the running backward has gathered so far
    Tensor grad;      // what earlier backward calls left, if it is kept
    bool keep_grad = false;
    std::vector<GradientHook> hooks;
  };

  Node(Op op, std::vector<Edge> parents, BackwardMany backward);
  ~Node();  // frees the graph behind it with an explicit stack
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  uint64_t number() const { return number_; }
  void release();  // drops the closure and what it saved, once backward has run
  bool released() const { return released_; }

  std::vector<Output> outputs;
  std::vector<Edge> parents;
  BackwardMany backward;
  bool queued = false;  // in the running backward's queue

 private:
  Op op_;
  uint64_t number_;
  bool released_ = false;
};

}  // namespace carousel
