#pragma once

#include <cstdint>
#include <string_view>

namespace carousel {

/// The one list of differentiable operations. A name here without a row in the gradient table fails the tests.
// clang-format off
#define CAROUSEL_OPS(X) /* a family a line */ \
  X(leaf) \
  X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum) X(clamp) X(where) \
  X(neg) X(abs) X(square) X(reciprocal) X(exp) X(expm1) X(log) X(log1p) X(sqrt) X(rsqrt) X(sin) X(cos) \
  X(tanh) X(sigmoid) X(softplus) X(relu) X(silu) X(gelu) X(erf) X(silu_gate) \
  X(sum) X(mean) X(max) X(min) X(logsumexp) X(softmax) X(log_softmax) \
  X(matmul) X(linear) \
  X(slice) X(select) X(transpose) X(permute) X(unsqueeze) X(squeeze) X(expand) X(reshape) X(to) \
  X(concatenate) X(stack) X(split) X(unbind) X(gather) X(scatter_add) X(take_rows) X(scatter_rows) \
  X(dropout) X(layer_norm) X(rms_norm) X(cross_entropy) \
  X(rnn) X(lstm) X(gru) X(linear_recurrence) X(attention) X(causal_conv) X(selective_scan) \
  X(recomputed)
// clang-format on

enum class Op : uint8_t {
#define CAROUSEL_OP(name) name,
  CAROUSEL_OPS(CAROUSEL_OP)
#undef CAROUSEL_OP
      count
};

std::string_view to_string(Op op);

}  // namespace carousel
