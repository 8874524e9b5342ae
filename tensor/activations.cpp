#include <carousel/tensor/activations.h>
#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/activations.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/operands.h>

namespace carousel {
namespace {

void check_alike(std::string_view operation, const Tensor& a, const Tensor& b) {
  check_same_dtype(operation, a, b);
  check<ShapeError>(a.shape() == b.shape(), operation, "operands must have one shape: got {} and {}", a.shape(),
                    b.shape());
}

/// Calls an `f(n, at)` of whole arrays, at[0] .. at[Results - 1] what it writes, then what it reads.
template <size_t Results, size_t N, class F>
void run_arrays(std::string_view operation, const Tensor& out, const std::array<Operand, N>& operands, F) {
  run_over<N>(out,
              dispatch_floating(
                  operation, out.dtype(),
                  [](auto type) -> kernels::RunBody<N> { return kernels::map_arrays<decltype(type), Results, F>; }),
              operands);
}

template <class F>
Tensor binary(std::string_view operation, const Tensor& a, const Tensor& b, F f) {
  check_alike(operation, a, b);
  Tensor out(a.shape(), a.dtype());
  run_arrays<1, 3>(operation, out, {out, a, b}, f);
  return out;
}

}  // namespace

Tensor softplus_backward(const Tensor& x, const Tensor& dy) {
  return binary("softplus", x, dy, [](auto n, auto at) { kernels::softplus_backward(n, at[1], at[2], at[0]); });
}

Tensor silu_backward(const Tensor& x, const Tensor& dy) {
  return binary("silu", x, dy, [](auto n, auto at) { kernels::silu_backward(n, at[1], at[2], at[0]); });
}

Tensor gelu_backward(const Tensor& x, const Tensor& dy) {
  return binary("gelu", x, dy, [](auto n, auto at) { kernels::gelu_backward(n, at[1], at[2], at[0]); });
}

Tensor silu_gate(const Tensor& y, const Tensor& z) {
  return binary("silu_gate", y, z, [](auto n, auto at) { kernels::silu_gate(n, at[1], at[2], at[0]); });
}

std::pair<Tensor, Tensor> silu_gate_backward(const Tensor& y, const Tensor& z, const Tensor& dout) {
  check_alike("silu_gate", y, z);
  check_alike("silu_gate", y, dout);
  Tensor dy(y.shape(), y.dtype()), dz(y.shape(), y.dtype());
  run_arrays<2, 5>("silu_gate", dy, {dy, dz, y, z, dout},
                   [](auto n, auto at) { kernels::silu_gate_backward(n, at[2], at[3], at[4], at[0], at[1]); });
  return {dy, dz};
}

}  // namespace carousel
