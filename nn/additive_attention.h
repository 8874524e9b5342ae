#pragma once

#include <carousel/nn/layers.h>

namespace carousel {

/// Additive attention (Bahdanau, Cho, Bengio 2014, section 3.1): a query s [B, Q] looks at the values h [B, S, N],
///   e_j = v^T tanh(W s + U h_j),   a = softmax(e) over j,   c = sum_j a_j h_j.
/// Parameters: query.weight W [A, Q], key.weight U [A, N], score.weight v [1, A], without biases, as in the paper's
/// equations. All are U(-1/sqrt(inputs), 1/sqrt(inputs)); the paper begins with v = 0 and W, U of deviation 0.001, from
/// which short runs hardly leave. The constructor throws ValueError for sizes that are not positive.
class AdditiveAttention : public Module {
 public:
  AdditiveAttention(int64_t query_size, int64_t value_size, int64_t attention_size, Rng& rng,
                    DType dtype = DType::float32);

  /// What is looked at, made once a sequence.
  struct Memory {
    Variable values;  ///< [B, S, N], zero behind the end of a row
    Variable keys;    ///< [B, S, A], U h_j
    Tensor visible;   ///< bool [B, S]; undefined: everything
  };
  /// Row b's positions from lengths[b] on (int64 [B]; undefined: none) get weight 0 and no gradient, whatever stands
  /// there, be it NaN. Throws ShapeError or ValueError for values or lengths that do not fit.
  Memory memory(const Variable& values, const Tensor& lengths = {}) const;

  struct Glimpse {
    Variable context;  ///< [B, N]
    Variable weights;  ///< [B, S], each row's sum 1; a row where nothing is visible has zeros, and context 0
  };
  /// Saves tanh(W s + U h_j), the weights, the values and the query. Throws ShapeError or ValueError for a query that
  /// does not fit.
  Glimpse look(const Variable& query, const Memory& memory) const;

 private:
  int64_t query_size_, value_size_;
  Linear query_, key_, score_;
};

}  // namespace carousel
