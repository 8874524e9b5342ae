#pragma once

#include <carousel/tensor/kernels/strided.h>
#include <carousel/tensor/scalar.h>
#include <carousel/tensor/tensor.h>

/// From tensors and scalars to the strided loop of kernels/. Not part of the public interface.
namespace carousel {

/// A tensor, or a scalar that stands for a tensor of any shape.
struct Operand {
  Operand(const Tensor& x)  // NOLINT(google-explicit-constructor): operand lists read like the operation
      : tensor(&x), data(static_cast<char*>(x.storage()->data()) + x.offset() * int64_t(size_of(x.dtype()))) {}
  Operand(Scalar& x) : data(x.data()) {}  // NOLINT(google-explicit-constructor)

  /// Step in bytes along `axis` of a loop over `shape`, to which the operand broadcasts.
  int64_t step(const Shape& shape, int axis) const {
    if (tensor == nullptr) return 0;
    const int own = axis - (shape.rank() - tensor->rank());
    if (own < 0 || tensor->shape()[own] == 1) return 0;
    return tensor->strides()[own] * static_cast<int64_t>(size_of(tensor->dtype()));
  }

  /// Whether one dense loop over `shape` visits it in order.
  bool is_flat(const Shape& shape) const {
    return tensor == nullptr || (tensor->shape() == shape && tensor->is_contiguous());
  }
  int64_t flat_step() const { return tensor == nullptr ? 0 : static_cast<int64_t>(size_of(tensor->dtype())); }

  const Tensor* tensor = nullptr;
  char* data;
};

/// The loop over the positions of `out`, to which all operands broadcast.
template <size_t N>
kernels::Nest<N> nest_over(const Tensor& out, const std::array<Operand, N>& operands) {
  const Shape& shape = out.shape();
  kernels::Nest<N> nest;
  if (out.numel() == 0) {
    nest.count = 0;
    return nest;
  }
  bool flat = true;
  for (const Operand& operand : operands) flat = flat && operand.is_flat(shape);
  std::array<int64_t, N> steps;
  if (flat) {
    for (size_t k = 0; k < N; ++k) steps[k] = operands[k].flat_step();
    nest.add_axis(out.numel(), steps);
    return nest;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    for (size_t k = 0; k < N; ++k) steps[k] = operands[k].step(shape, axis);
    nest.add_axis(shape[axis], steps);
  }
  return nest;
}

/// Runs `body` over all positions of `out`, the first operand; the others broadcast to its shape.
template <size_t N>
void run_over(const Tensor& out, kernels::RunBody<N> body, const std::array<Operand, N>& operands) {
  std::array<char*, N> at;
  for (size_t k = 0; k < N; ++k) at[k] = operands[k].data;
  kernels::for_each_run(nest_over(out, operands), at, body);
}

/// Whether the predicate in `body` holds for some element of `x`.
inline bool any_over(const Tensor& x, bool (*body)(const kernels::Run<1>&)) {
  const std::array<Operand, 1> operands{x};
  return kernels::any_run(nest_over(x, operands), operands[0].data, body);
}

/// `source`, or a copy of it where writing to `target` would change elements that are yet to be read.
Tensor apart_from(const Tensor& target, const Tensor& source);

inline void check_defined(std::string_view operation, const Tensor& x) {
  check<ValueError>(x.defined(), operation, "needs a tensor: got an undefined one");
}

inline void check_same_dtype(std::string_view operation, const Tensor& a, const Tensor& b) {
  check_defined(operation, a);
  check_defined(operation, b);
  check<ValueError>(a.dtype() == b.dtype(), operation, "operands must have one dtype: got {} and {}",
                    to_string(a.dtype()), to_string(b.dtype()));
}

}  // namespace carousel
