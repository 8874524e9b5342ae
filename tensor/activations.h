#pragma once

#include <carousel/tensor/tensor.h>

#include <utility>

/// Activations in one pass over memory, where elementwise.h would take several: what autograd and the layers use.
/// Operands of one shape and dtype, float32 or float64 (ShapeError, ValueError otherwise); results are new and
/// row-major.
namespace carousel {

// dy f'(x).
Tensor softplus_backward(const Tensor& x, const Tensor& dy);
Tensor silu_backward(const Tensor& x, const Tensor& dy);
Tensor gelu_backward(const Tensor& x, const Tensor& dy);

/// y silu(z).
Tensor silu_gate(const Tensor& y, const Tensor& z);
/// Its gradients, of y and of z, from that of the result.
std::pair<Tensor, Tensor> silu_gate_backward(const Tensor& y, const Tensor& z, const Tensor& dout);

}  // namespace carousel
