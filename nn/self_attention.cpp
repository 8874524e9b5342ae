#include <carousel/nn/self_attention.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/record.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/growing.h>
#include <carousel/nn/init.h>
#include <carousel/nn/watched_attention.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace carousel {
namespace {

constexpr std::string_view layer_name = "CausalSelfAttention";

void check_entries(const State& state) {
  const int64_t keys = state["keys"].size(2), values = state["values"].size(2),
                visible = state.count("visible").size(1);
  check<ShapeError>(keys == values && keys == visible, layer_name,
                    "keys, values and visible must be of one length: got {}, {} and {}", keys, values, visible);
}

// Row by row where a sequence is cut from its past and where it ends; undefined where no row is. S counts the entries
// of the cache after the sequence.
struct Cuts {
  Tensor first;  // int64 [B, T]: the first entry that a step looks at; S for a step behind the row's end
  Tensor kept;   // bool [B, S]: what the state still holds after the sequence

  Cuts(const SequenceOptions& options, int64_t batch, int64_t steps, int64_t before) {
    if (!options.reset.defined() && !options.lengths.defined()) return;
    first = Tensor({batch, steps}, DType::int64);
    kept = zeros({batch, before + steps}, DType::boolean);
    const Tensor reset = options.reset.defined() ? options.reset.contiguous() : zeros({batch, steps}, DType::boolean);
    const Tensor lengths =
        options.lengths.defined() ? options.lengths.contiguous() : full({batch}, double(steps), DType::int64);
    const bool* const cut = reset.data<bool>();
    const int64_t* const length = lengths.data<int64_t>();
    int64_t* const look = first.mutable_data<int64_t>();
    bool* const keep = kept.mutable_data<bool>();
    for (int64_t row = 0; row < batch; ++row) {
      int64_t latest = 0;
      for (int64_t t = 0; t < steps; ++t) {
        const bool ended = t >= length[row];
        if (cut[row * steps + t] && !ended) latest = before + t;
        look[row * steps + t] = ended ? before + steps : latest;
      }
      bool* const of_row = keep + row * (before + steps);
      std::fill(of_row + latest, of_row + before + length[row], true);
    }
  }

  Tensor keep_counts(const Tensor& visible) const {
    return kept.defined() ? where(kept, visible, zeros({}, DType::int64)) : visible;
  }
};

// As a mask; undefined when everything is visible, so that a step of generation makes nothing as long as the cache.
Tensor visible_mask(const Tensor& visible) {
  const int64_t* const flags = visible.data<int64_t>();
  const int64_t row_stride = visible.strides()[0], stride = visible.strides()[1];
  for (int64_t row = 0; row < visible.size(0); ++row) {
    for (int64_t i = 0; i < visible.size(1); ++i) {
      if (flags[row * row_stride + i * stride] == 0) return visible.to(DType::boolean);
    }
  }
  return {};
}

}  // namespace

// [B, A, T, hd] each.
struct CausalSelfAttention::Heads {
  Variable q, k, v;
};

CausalSelfAttention::CausalSelfAttention(int64_t size, const CausalSelfAttentionConfig& config, Rng& rng, DType dtype)
    : size_(size), heads_(config.heads), dtype_(dtype) {
  check<ValueError>(size > 0 && config.heads > 0 && config.depth > 0, layer_name,
                    "size, heads and depth must be positive: got {}, {} and {}", size, config.heads, config.depth);
  check<ValueError>(size % config.heads == 0, layer_name, "heads must divide the size: got {} and {}", config.heads,
                    size);
  const Linear::Config inner{.deviation = init::gpt2_deviation};
  const Linear::Config residual{.deviation = init::gpt2_residual_deviation(config.depth)};
  c_attn_ = std::make_unique<Linear>(size, 3 * size, inner, rng, dtype);
  c_proj_ = std::make_unique<Linear>(size, size, residual, rng, dtype);
  add_child("c_attn", *c_attn_);
  add_child("c_proj", *c_proj_);
}

std::vector<StateShape> CausalSelfAttention::state_shapes(int64_t batch) const {
  const Shape none{batch, heads_, 0, size_ / heads_};
  return {{"keys", none, dtype_}, {"values", none, dtype_}, {"visible", {batch, 0}, DType::int64}};
}

CausalSelfAttention::Heads CausalSelfAttention::project(const Variable& x) const {
  const Variable qkv = reshape(c_attn_->forward(x), {x.size(0), x.size(1), 3, heads_, size_ / heads_});
  const Variables parts = unbind(qkv, 2);
  return {transpose(parts[0], 1, 2), transpose(parts[1], 1, 2), transpose(parts[2], 1, 2)};
}

Variable CausalSelfAttention::merge(const Variable& heads) const {
  return c_proj_->forward(reshape(transpose(heads, 1, 2), {heads.size(0), heads.size(2), size_}));
}

StepResult CausalSelfAttention::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step(layer_name, *this, x_t, state, options);
  check_entries(state);
  const State before = reset_rows(state, options.reset);
  const Heads now = project(unsqueeze(x_t, 1));
  State next{{"keys", grow(before["keys"], now.k, 2)}, {"values", grow(before["values"], now.v, 2)}};
  next.set_count("visible", grow(before.count("visible"), ones({x_t.size(0), 1}, DType::int64), 1));

  const Tensor visible = visible_mask(next.count("visible"));
  const Variable keys = attention::keep_entries(next["keys"], visible);  // what is not visible may be NaN
  const Variable values = attention::keep_entries(next["values"], visible);
  const auto head_size = static_cast<double>(now.q.size(3));
  const double scale = 1 / std::sqrt(head_size);
  const Variable scores = matmul(now.q, transpose(keys, 2, 3)) * scale;
  const Variable hidden = full({}, -std::numeric_limits<double>::infinity(), dtype_);
  const Variable seen = visible.defined() ? where(visible.unsqueeze(1).unsqueeze(1), scores, hidden) : scores;
  const Variable weights = softmax(seen, -1);
  return {squeeze(merge(matmul(weights, values)), 1), next};
}

SequenceResult CausalSelfAttention::forward(const Variable& x, const State& state,
                                            const SequenceOptions& options) const {
  check_sequence(layer_name, *this, x, state, options);
  check_entries(state);
  const int64_t batch = x.size(0), steps = x.size(1);
  if (steps == 0) return unroll(x, state, options);
  const Cuts cuts(options, batch, steps, state["keys"].size(2));
  const Heads now = project(zero_after_end(x, options.lengths));
  const Variable keys = grow(state["keys"], now.k, 2), values = grow(state["values"], now.v, 2);
  const Tensor visible = grow(state.count("visible"), ones({batch, steps}, DType::int64), 1);
  const AttentionOptions seen{.causal = true, .first = cuts.first, .visible = visible_mask(visible)};

  attention::Results results;
  if (options.visitor) {
    results = attention::watched(now.q, keys, values, seen, cuts.kept, options);
  } else {
    results = {scaled_dot_product_attention(now.q, keys, values, seen), attention::keep_entries(keys, cuts.kept),
               attention::keep_entries(values, cuts.kept)};
  }
  State next{{"keys", results.keys}, {"values", results.values}};
  next.set_count("visible", cuts.keep_counts(visible));
  return {zero_after_end(merge(results.y), options.lengths), next};
}

Tensor CausalSelfAttention::weights(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence(layer_name, *this, x, state, options);
  check_entries(state);
  const NoGrad no_grad;
  const Cuts cuts(options, x.size(0), x.size(1), state["keys"].size(2));
  const Heads now = project(zero_after_end(x, options.lengths));
  // Not grow(): looking must not take the room that the state's next step will want.
  const Variables keys{state["keys"], now.k};
  const std::vector<Tensor> visible{state.count("visible"), ones({x.size(0), x.size(1)}, DType::int64)};
  return attention_weights(
      now.q.value(), concatenate(keys, 2).value(),
      {.causal = true, .first = cuts.first, .visible = concatenate(visible, 1).to(DType::boolean)});
}

}  // namespace carousel
