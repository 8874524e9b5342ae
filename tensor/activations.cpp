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

/// f(a, b) for an `f(n, at)` of whole arrays, at[0] the result, then a and b.
template <class F>
Tensor binary(std::string_view operation, const Tensor& a, const Tensor& b, F) {
  check_alike(operation, a, b);
  Tensor out(a.shape(), a.dtype());
  run_over<3>(
      out,
      dispatch_floating(operation, a.dtype(),
                        [](auto type) -> kernels::RunBody<3> { return kernels::map_arrays<decltype(type), 1, F>; }),
      {out, a, b});
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
  const auto body = [](auto n, auto at) { kernels::silu_gate_backward(n, at[2], at[3], at[4], at[0], at[1]); };
  run_over<5>(dy,
              dispatch_floating("silu_gate", y.dtype(),
                                [&body](auto type) -> kernels::RunBody<5> {
                                  return kernels::map_arrays<decltype(type), 2, std::remove_cvref_t<decltype(body)>>;
                                }),
              {dy, dz, y, z, dout});
  return {dy, dz};
}

}  // namespace carousel
