#include <carousel/autograd/node.h>
#include <carousel/autograd/variable.h>

#include <utility>

namespace carousel {

Variable::Variable(Tensor value) : value_(std::move(value)) {}

Variable::Variable(Tensor value, std::shared_ptr<Node> node, uint32_t output)
    : value_(std::move(value)), node_(std::move(node)), output_(output) {}

Variable Variable::parameter(Tensor value) {
  check<ValueError>(value.defined() && is_floating(value.dtype()), "parameter",
                    "only float32 and float64 values can require a gradient: got {}",
                    value.defined() ? to_string(value.dtype()) : "an undefined tensor");
  auto node = std::make_shared<Node>(Op::leaf, std::vector<Edge>{}, BackwardMany{});
  node->add_output(value);
  node->watch(0).keep = true;
  return Variable(std::move(value), std::move(node), 0);
}

bool Variable::is_leaf() const { return !node_ || node_->is_leaf(); }
Op Variable::op() const { return node_ ? node_->op() : Op::leaf; }

Tensor Variable::grad() const {
  if (!node_ || !node_->outputs()[output_].watch) return {};
  return node_->watch(output_).grad;
}

void Variable::set_grad(Tensor gradient) {
  check<ValueError>(requires_grad() && gradient.defined(), "set_grad",
                    "the variable must require a gradient, and the gradient be defined");
  check<ShapeError>(gradient.shape() == shape(), "set_grad",
                    "the gradient must have the variable's shape: got {} and {}", to_string(gradient.shape()),
                    to_string(shape()));
  check<ValueError>(gradient.dtype() == dtype(), "set_grad",
                    "the gradient must have the variable's dtype: got {} and {}", to_string(gradient.dtype()),
                    to_string(dtype()));
  node_->watch(output_).grad = std::move(gradient);
}

void Variable::zero_grad() {
  if (node_ && node_->outputs()[output_].watch) node_->watch(output_).grad = Tensor();
}

void Variable::retain_grad() {
  check<ValueError>(requires_grad(), "retain_grad", "the variable must require a gradient");
  node_->watch(output_).keep = true;
}

void Variable::add_hook(GradientHook hook) {
  check<ValueError>(requires_grad(), "add_hook", "the variable must require a gradient");
  node_->watch(output_).hooks.push_back(std::move(hook));
}

}  // namespace carousel
