#include <carousel/nn/additive_attention.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/sequence_layer.h>

#include <limits>

namespace carousel {
namespace {

Variable number(double value, DType dtype) { return Tensor::scalar(value, dtype); }

}  // namespace

AdditiveAttention::AdditiveAttention(int64_t query_size, int64_t value_size, int64_t attention_size, Rng& rng,
                                     DType dtype)
    : query_size_(query_size),
      value_size_(value_size),
      query_(query_size, attention_size, {.bias = false}, rng, dtype),
      key_(value_size, attention_size, {.bias = false}, rng, dtype),
      score_(attention_size, 1, {.bias = false}, rng, dtype) {
  add_child("query", query_);
  add_child("key", key_);
  add_child("score", score_);
}

AdditiveAttention::Memory AdditiveAttention::memory(const Variable& values, const Tensor& lengths) const {
  check<ShapeError>(values.rank() == 3 && values.size(2) == value_size_, "AdditiveAttention",
                    "values must be [B, S, N] with N = {}: got {}", value_size_, to_string(values.shape()));
  check_lengths("AdditiveAttention", lengths, values.size(0), values.size(1));
  if (!lengths.defined()) return {values, key_.forward(values), {}};
  // The values are cut off here and the energies in look(), since a weight of zero times what is not finite is NaN.
  const Tensor visible = before_end(lengths, values.size(1));
  const Variable cut = where(visible.unsqueeze(2), values, number(0, values.dtype()));
  return {cut, key_.forward(cut), visible};
}

AdditiveAttention::Glimpse AdditiveAttention::look(const Variable& query, const Memory& memory) const {
  check<ShapeError>(query.shape() == Shape{memory.values.size(0), query_size_}, "AdditiveAttention",
                    "query must be [{}, {}]: got {}", memory.values.size(0), query_size_, to_string(query.shape()));
  const Variable both = tanh(unsqueeze(query_.forward(query), 1) + memory.keys);
  Variable energies = squeeze(score_.forward(both), 2);
  if (memory.visible.defined()) {
    energies = where(memory.visible, energies, number(-std::numeric_limits<double>::infinity(), energies.dtype()));
  }
  const Variable weights = softmax(energies, 1);
  return {.context = squeeze(matmul(unsqueeze(weights, 1), memory.values), 1), .weights = weights};
}

}  // namespace carousel
