#include <carousel/autograd/node.h>
#include <carousel/autograd/record.h>

#include <algorithm>
#include <utility>

namespace carousel {
namespace {

std::vector<Edge> edges_to(std::span<const Variable> inputs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const Variable& input : inputs) edges.push_back({input.node(), input.output()});
  return edges;
}

// An operation is to blame for a bad result only when its inputs were good.
void check_anomaly(Op op, std::span<const Tensor> results, std::span<const Variable> inputs) {
  for (const Variable& input : inputs) check_anomaly("an input of", op, input.value());
  for (const Tensor& result : results) check_anomaly("the result of", op, result);
}

thread_local Reads* reads = nullptr;  // the innermost scope

}  // namespace

Reads::Reads() : outer_(std::exchange(reads, this)), first_(Node::next_number()) {}
Reads::~Reads() { reads = outer_; }

void Reads::note(std::span<const Variable> inputs) {
  for (Reads* scope = reads; scope != nullptr; scope = scope->outer_) {
    for (const Variable& input : inputs) scope->add(input);
  }
}

void Reads::add(const Variable& input) {
  if (!input.requires_grad() || input.node()->number() >= first_) return;
  const std::pair<const Node*, uint32_t> source{input.node().get(), input.output()};
  if (std::find(noted_.begin(), noted_.end(), source) != noted_.end()) return;
  noted_.push_back(source);
  values_.emplace_back(input.value());
}

const Tensor& Saved::get() const {
  if (!value_.defined()) return value_;
  check<ValueError>(value_.version() == version_, to_string(running_backward()),
                    "a value saved for backward was changed in place since: shape {}, version {} then, {} now",
                    to_string(value_.shape()), version_, value_.version());
  return value_;
}

bool needs_grad(std::span<const Variable> inputs) {
  return grad_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const Variable& v) { return v.requires_grad(); });
}

bool needs_grad(std::initializer_list<Variable> inputs) { return needs_grad(std::span(inputs.begin(), inputs.size())); }

Variables record(Op op, std::vector<Tensor> values, std::span<const Variable> inputs, BackwardMany backward) {
  check_anomaly(op, values, inputs);
  Variables results;
  results.reserve(values.size());
  if (!needs_grad(inputs)) {
    for (Tensor& value : values) results.emplace_back(std::move(value));
    return results;
  }
  Reads::note(inputs);
  auto node = std::make_shared<Node>(op, edges_to(inputs), std::move(backward));
  for (const Tensor& value : values) node->add_output(value);
  for (uint32_t i = 0; i < values.size(); ++i) results.emplace_back(std::move(values[i]), node, i);
  return results;
}

Variable record(Op op, Tensor value, std::span<const Variable> inputs, Backward backward, Remake remake) {
  check_anomaly(op, std::span(&value, 1), inputs);
  if (!needs_grad(inputs)) return Variable(std::move(value));
  Reads::note(inputs);
  auto node = std::make_shared<Node>(
      op, edges_to(inputs),
      [backward = std::move(backward)](std::span<const Tensor> cotangents) { return backward(cotangents[0]); });
  node->add_output(value);
  node->set_remake(std::move(remake));
  return Variable(std::move(value), std::move(node), 0);
}

Variable record(Op op, Tensor value, std::initializer_list<Variable> inputs, Backward backward, Remake remake) {
  return record(op, std::move(value), std::span(inputs.begin(), inputs.size()), std::move(backward), std::move(remake));
}

Remake remake_of(const Variable& x) { return x.node() ? x.node()->remake() : Remake(); }

}  // namespace carousel
