#include <carousel/nn/attention.h>

#include <carousel/nn/attention_parts.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

#include <cmath>
#include <limits>

namespace carousel {
namespace {

void check_mask(std::string_view name, const Tensor& mask, bool fits, std::string_view shapes, DType dtype) {
  if (!mask.defined()) return;
  check<ShapeError>(fits, "attention", "{} must be {}: got {}", name, shapes, to_string(mask.shape()));
  check<ValueError>(mask.dtype() == dtype, "attention", "{} must be {}: got {}", name, to_string(dtype),
                    to_string(mask.dtype()));
}

void check_queries(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check<ValueError>(q.defined() && k.defined(), "attention", "queries and keys must be defined: got undefined ones");
  check<ShapeError>(q.rank() == 4 && k.rank() == 4 && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
                        q.size(3) == k.size(3) && q.size(3) > 0,
                    "attention", "queries must be [B, A, T, hd] and keys [B, A, S, hd], hd > 0: got {} and {}",
                    to_string(q.shape()), to_string(k.shape()));
  check<ValueError>(is_floating(q.dtype()) && q.dtype() == k.dtype(), "attention",
                    "queries and keys must be of one floating type: got {} and {}", to_string(q.dtype()),
                    to_string(k.dtype()));
  const int64_t batch = q.size(0), queries = q.size(2), keys = k.size(2);
  const Tensor &first = options.first, &visible = options.visible;
  check_mask("first", first, first.shape() == Shape{batch, queries}, "[B, T]", DType::int64);
  check_mask("visible", visible,
             visible.shape() == Shape{batch, keys} || visible.shape() == Shape{batch, queries, keys},
             "[B, S] or [B, T, S]", DType::boolean);
  check<ValueError>(!options.scale || std::isfinite(*options.scale), "attention", "scale must be finite: got {}",
                    options.scale.value_or(0));
}

// Which keys each query sees, [B, 1, T, S] or what broadcasts to it; undefined: all.
Tensor seen_keys(const AttentionOptions& options, int64_t queries, int64_t keys) {
  Tensor seen;
  const auto and_also = [&seen](const Tensor& mask) { seen = seen.defined() ? logical_and(seen, mask) : mask; };
  if (options.causal) and_also(lower_triangle(queries, keys, keys - queries).unsqueeze(0).unsqueeze(0));
  if (options.first.defined()) and_also(less_equal(options.first.unsqueeze(-1), arange(keys)).unsqueeze(1));
  if (options.visible.defined()) {
    const Tensor& visible = options.visible;
    and_also((visible.rank() == 2 ? visible.unsqueeze(1) : visible).unsqueeze(1));
  }
  return seen;
}

}  // namespace

Variable scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                      const AttentionOptions& options) {
  check_queries(q.value(), k.value(), options);
  check<ValueError>(v.defined(), "attention", "values must be defined: got an undefined Variable");
  check<ShapeError>(v.shape() == k.shape(), "attention", "values must have the shape of the keys: got {} and {}",
                    to_string(v.shape()), to_string(k.shape()));
  check<ValueError>(v.dtype() == k.dtype(), "attention", "values must have the dtype of the keys: got {} and {}",
                    to_string(v.dtype()), to_string(k.dtype()));
  const attention::Outputs out = attention::forward(q.value(), k.value(), v.value(), options);
  return record(Op::attention, out.y, {q, k, v},
                [saved = attention::SavedAttention(q.value(), k.value(), v.value(), out, options)](const Tensor& dy) {
                  return saved.backward(dy);
                });
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  check_queries(q, k, options);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  const Tensor scores = matmul(q, k.transpose(2, 3)) * scale;
  const Tensor seen = seen_keys(options, q.size(2), k.size(2));
  const Tensor nothing = full({}, -std::numeric_limits<double>::infinity(), q.dtype());
  return softmax(seen.defined() ? where(seen, scores, nothing) : scores, -1);
}

}  // namespace carousel
