#pragma once

#include <carousel/nn/attention.h>
#include <carousel/nn/sequence_layer.h>

namespace carousel::attention {

/// What a sequence of steps leaves.
struct Results {
  Variable y;             ///< [B, A, T, hd]
  Variable keys, values;  ///< [B, A, S, hd]: of the state after the last step
};

/// `x` [B, A, S, hd] with zeros for the entries where `kept` [B, S] is false; as it came when `kept` is undefined.
Variable keep_entries(const Variable& x, const Tensor& kept);

/// scaled_dot_product_attention of T steps, whose keys are the last T of S, and keep_entries of keys and values, as one
/// node whose backward can be watched. It goes from the last query to the first, and shows the visitor of `options` at
/// each step the saved "weights" [1, B, A, S_t] and the gradients "keys" and "values" [1, B, A, S_t, hd]: the total
/// derivative of the loss with respect to the state after that step. That costs O(S) more memory, and time as T calls
/// with one query. In `seen`, which is causal, first[b, t] is S for a step behind the row's end, and entry S - T + t
/// itself where the row was cut from its past.
Results watched(const Variable& q, const Variable& keys, const Variable& values, const AttentionOptions& seen,
                const Tensor& kept, const SequenceOptions& options);

}  // namespace carousel::attention
