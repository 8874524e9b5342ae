#pragma once

#include <carousel/autograd/variable.h>

#include <optional>

namespace carousel {

/// Which keys a query may see, all of it together, and how scores are scaled.
struct AttentionOptions {
  bool causal = false;               ///< query i sees key j only when j <= S - T + i: the last query sees all
  Tensor first = {};                 ///< int64 [B, T]: query i sees key j only when j >= first[b, i]
  Tensor visible = {};               ///< bool [B, S] or [B, T, S]: only where true
  std::optional<double> scale = {};  ///< of the scores; none: 1 / sqrt(hd)
};

/// Scaled dot-product attention (Vaswani and others 2017, section 3.2.1), head by head:
///   y_i = sum_j softmax_j(scale q_i . k_j) v_j  over the keys j that query i sees.
/// q [B, A, T, hd], k and v [B, A, S, hd] -> y [B, A, T, hd], in memory [B, T, A, hd], so that merging heads is a view.
/// A query that sees no key gives zeros and no gradient, and what nobody sees may be NaN. One node, which saves q, k,
/// v, y, the masks and log sum exp of each query's scores: memory linear in T (Dao and others 2022). Throws ShapeError
/// or ValueError for what does not fit.
Variable scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                      const AttentionOptions& options = {});

/// The softmax above, [B, A, T, S], to look at: zero where a query does not see a key. Throws as above.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

}  // namespace carousel
