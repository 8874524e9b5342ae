#pragma once

#include <carousel/autograd/record.h>
#include <carousel/nn/attention.h>

/// Inside the layers that attend: the kernel on Tensors, for operations that have a backward of their own around it.
namespace carousel::attention {

struct Outputs {
  Tensor y;    ///< [B, A, T, hd], in memory [B, T, A, hd]
  Tensor lse;  ///< [B, A, T]: log sum exp of each query's scores
};
Outputs forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

struct InputGradients {
  Tensor q, k, v;
};

/// What forward leaves for backward.
class SavedAttention {
 public:
  SavedAttention(const Tensor& q, const Tensor& k, const Tensor& v, const Outputs& outputs,
                 const AttentionOptions& options);

  const Tensor& q() const { return q_.get(); }
  const Tensor& k() const { return k_.get(); }
  /// The gradients of q, k and v from that of y.
  Gradients backward(const Tensor& dy) const;
  /// The same of one query alone, which sees the first `keys` keys at most: dk and dv are of those.
  InputGradients backward_of_query(int64_t query, int64_t keys, const Tensor& dy) const;
  /// The weights of that query: [B, A, 1, keys].
  Tensor weights_of_query(int64_t query, int64_t keys) const;

  /// The options as they were.
  AttentionOptions options() const;

 private:
  AttentionOptions options_of_query(int64_t query, int64_t keys) const;

  Saved q_, k_, v_, y_, lse_, first_, visible_;
  AttentionOptions plain_;  // the options that are not tensors
};

}  // namespace carousel::attention
