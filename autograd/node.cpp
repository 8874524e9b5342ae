#include <carousel/autograd/node.h>

#include <atomic>
#include <utility>

namespace carousel {
namespace {

std::atomic<uint64_t> nodes_made{0};
std::atomic<int64_t> live_operations{0};
thread_local Op running = Op::count;

// While one lives, the backward of `op` is running.
class Running {
 public:
  explicit Running(Op op) : before_(std::exchange(running, op)) {}
  ~Running() { running = before_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Op before_;
};

// Where the parents of dying nodes wait for the outermost destructor in this thread. If each node freed its own
// parents, the destructor of a chain of a million nodes would call itself a million times.
thread_local std::vector<std::shared_ptr<Node>>* orphans = nullptr;

void free_iteratively(std::vector<Edge>& parents) {
  std::vector<std::shared_ptr<Node>> mine;
  const bool outermost = orphans == nullptr;
  if (outermost) orphans = &mine;
  for (Edge& edge : parents) {
    if (edge.node) orphans->push_back(std::move(edge.node));
  }
  if (!outermost) return;
  while (!mine.empty()) {
    const std::shared_ptr<Node> node = std::move(mine.back());
    mine.pop_back();
  }
  orphans = nullptr;
}

}  // namespace

Node::Node(Op op, std::vector<Edge> parents, std::variant<BackwardMany, Again> backward)
    : op_(op),
      number_(nodes_made.fetch_add(1, std::memory_order_relaxed)),
      parents_(std::move(parents)),
      backward_(std::move(backward)) {
  if (!is_leaf()) live_operations.fetch_add(1, std::memory_order_relaxed);
}

Node::~Node() {
  if (!is_leaf()) live_operations.fetch_sub(1, std::memory_order_relaxed);
  free_iteratively(parents_);
}

void Node::add_output(const Tensor& value) { outputs_.push_back({value.shape(), value.dtype(), nullptr}); }

Node::Watch& Node::watch(uint32_t output) {
  std::unique_ptr<Watch>& watch = outputs_[output].watch;
  if (!watch) watch = std::make_unique<Watch>();
  return *watch;
}

uint64_t Node::next_number() { return nodes_made.load(std::memory_order_relaxed); }

void Node::check_alive() const {
  check<ValueError>(!released_, "backward",
                    "the graph behind {} was freed by an earlier backward: pass retain_graph, or detach() a state "
                    "that is carried from one window to the next",
                    to_string(op_));
}

Gradients Node::run_backward(std::span<const Tensor> cotangents) const {
  check_alive();
  const Running scope(op_);
  return std::get<BackwardMany>(backward_)(cotangents);
}

Variables Node::make_again() const {
  check_alive();
  const Running scope(op_);
  Variables results = std::get<Again>(backward_)(parents_);
  bool same = results.size() == outputs_.size();
  for (size_t i = 0; same && i < results.size(); ++i) {
    same = results[i].shape() == outputs_[i].shape && results[i].dtype() == outputs_[i].dtype;
  }
  check<ValueError>(same, to_string(op_), "the function must give results of the same shapes and dtypes each time");
  return results;
}

void Node::release() {
  released_ = true;
  backward_ = BackwardMany();
  remake_ = nullptr;
  free_iteratively(parents_);
  parents_.clear();
}

Op running_backward() { return running; }
int64_t live_nodes() { return live_operations.load(std::memory_order_relaxed); }

}  // namespace carousel
