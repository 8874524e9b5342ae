#pragma once

#include <carousel/tensor/tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace carousel::examples {

/// Counts of all runs of up to `order` tokens, and the probabilities that they give: n-gram models, interpolated by
/// Witten and Bell's method (1991, method C). With h a context of n - 1 tokens, C(h) its count, T(h) the number of
/// different tokens that followed it, and h' the context without its first token,
///
///   p_n(w | h) = (C(h w) + T(h) p_{n-1}(w | h')) / (C(h) + T(h)),    p_0(w) = 1 / V,
///
/// and p_n = p_{n-1} after a context that never occurred.
class Ngrams {
 public:
  /// tokens int64 [N] in [0, vocabulary). The order is lowered where `order` tokens do not fit into 64 bits: 5 of a
  /// vocabulary up to 4,096, 4 up to 65,536. Throws ShapeError, IndexError, and ValueError for an order below 1.
  Ngrams(const Tensor& tokens, int64_t vocabulary, int64_t order);

  int64_t order() const { return static_cast<int64_t>(tables_.size()); }
  /// p_1 .. p_order of `token` after `context`, whose last tokens count; after fewer than n - 1 the shorter ones
  /// decide.
  std::vector<double> probabilities(std::span<const int64_t> context, int64_t token) const;
  /// Mean nats per token of p_1 .. p_order over tokens int64 [N], N >= 2: of each but the first, as `evaluate` scores.
  std::vector<double> losses(const Tensor& tokens) const;

 private:
  // Runs of n tokens as numbers, the first token in the highest digits; sorted, so that those of one context are
  // neighbours.
  struct Table {
    std::vector<uint64_t> runs;
    std::vector<int64_t> before;  // occurrences of all runs before each, and of all in the end
  };
  static Table count(std::vector<uint64_t> runs);

  int64_t vocabulary_;
  int bits_;  // of a token
  std::vector<Table> tables_;
};

}  // namespace carousel::examples
