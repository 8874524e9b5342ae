#pragma once

#include <carousel/tensor/tensor.h>

#include <functional>
#include <vector>

namespace carousel {

/// What an operation's backward gives one of its inputs: a tensor, or how to add to a sum of gradients. The second is
/// for gradients that are zero nearly everywhere, such as that of the table behind a look-up: where a sum is there
/// already, the zeros are neither made nor added.
class Gradient {
 public:
  using Add = std::function<void(Tensor& sum)>;  ///< changes `sum` in place: no more than sum += gradient

  Gradient() = default;    ///< undefined: zero
  Gradient(Tensor value);  // NOLINT: most gradients are tensors
  Gradient(const Shape& shape, DType dtype, Add add);

  bool defined() const { return value_.defined() || adding_; }
  const Shape& shape() const { return value_.defined() ? value_.shape() : shape_; }
  DType dtype() const { return value_.defined() ? value_.dtype() : dtype_; }

  Tensor value() const;                      ///< the gradient alone: the tensor, or what is added to zeros
  Tensor added_to(const Tensor& sum) const;  ///< in new memory
  void add_to(Tensor& sum) const;            ///< in place

 private:
  Tensor value_;
  Shape shape_;
  DType dtype_ = DType::float32;
  Add adding_;
};

/// One gradient per input, in the inputs' order; undefined means zero. Each has its input's shape and dtype.
using Gradients = std::vector<Gradient>;

}  // namespace carousel
