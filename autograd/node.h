#pragma once

#include <carousel/autograd/record.h>

#include <utility>
#include <variant>

namespace carousel {

/// Which output of which node a gradient goes to.
struct Edge {
  std::shared_ptr<Node> node;
  uint32_t output = 0;
};

/// The results of an operation that was forgotten, recorded anew from its parents: backward goes on in what they were
/// made by.
using Again = std::function<Variables(std::span<const Edge> parents)>;

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

  Node(Op op, std::vector<Edge> parents, std::variant<BackwardMany, Again> backward);
  ~Node();  // frees the graph behind it with an explicit stack
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  uint64_t number() const { return number_; }
  static uint64_t next_number();
  bool is_leaf() const { return op_ == Op::leaf; }
  const std::vector<Edge>& parents() const { return parents_; }
  std::vector<Output>& outputs() { return outputs_; }
  void add_output(const Tensor& value);
  Watch& watch(uint32_t output);  // made on first use
  void set_remake(Remake remake) { remake_ = std::move(remake); }
  const Remake& remake() const { return remake_; }

  /// The gradients of the parents; throws ValueError when an earlier backward has freed this node.
  Gradients run_backward(std::span<const Tensor> cotangents) const;
  bool is_forgotten() const { return std::holds_alternative<Again>(backward_); }
  /// Of a forgotten node, its results with a history; throws as run_backward, and unless they look as the first did.
  Variables make_again() const;
  /// Drops the closures, what they saved, and the parents: backward has passed here.
  void release();

 private:
  void check_alive() const;

  Op op_;
  bool released_ = false;
  uint64_t number_;
  std::vector<Edge> parents_;
  std::vector<Output> outputs_;
  std::variant<BackwardMany, Again> backward_;
  Remake remake_;
};

/// While one lives, its thread notes what operations read that was made before, each value once.
class Reads {
 public:
  Reads();
  ~Reads();
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  std::vector<Saved> take() { return std::move(values_); }
  /// Called by `record`, for the scopes of this thread, with what an operation reads.
  static void note(std::span<const Variable> inputs);

 private:
  void add(const Variable& input);

  Reads* outer_;
  uint64_t first_;  // number of a node made since
  std::vector<std::pair<const Node*, uint32_t>> noted_;
  std::vector<Saved> values_;
};

/// While one lives, its thread records, under NoGrad too: for what backward makes again.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  bool before_;
};

/// The operation whose backward is running in this thread; Op::count when none. For error texts.
Op running_backward();

/// Throws ValueError `[anomaly] WHAT OP holds a NaN` when the mode is on and `value` holds a NaN or an infinity.
void check_anomaly(std::string_view what, Op op, const Tensor& value);
void check_anomaly(std::string_view what, Op op, const Gradient& gradient);

}  // namespace carousel
