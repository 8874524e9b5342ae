#include <carousel/autograd/gradient.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <utility>

namespace carousel {

Gradient::Gradient(Tensor value) : value_(std::move(value)) {}

Gradient::Gradient(const Shape& shape, DType dtype, Add add) : shape_(shape), dtype_(dtype), adding_(std::move(add)) {}

Tensor Gradient::value() const {
  if (!adding_) return value_;
  Tensor made = zeros(shape_, dtype_);
  adding_(made);
  return made;
}

Tensor Gradient::added_to(const Tensor& sum) const {
  if (!adding_) return sum + value_;
  Tensor total = sum.clone();
  adding_(total);
  return total;
}

void Gradient::add_to(Tensor& sum) const {
  if (adding_) {
    adding_(sum);
  } else {
    add_(sum, value_);
  }
}

}  // namespace carousel
