#pragma once

#include <carousel/autograd/variable.h>
#include <carousel/nn/module.h>

#include <optional>

/// Operations of neural networks, each one node.
namespace carousel {

/// Inverted dropout whose mask is a pure function of its arguments: row r of x [B, T, H] at step t is keyed by (key,
/// first_step + t, r, feature), so that step by step equals the whole sequence. x [B, H] counts as one step. The result
/// has x's shape; backward makes the mask again and saves nothing. Throws ShapeError for another rank, ValueError for a
/// probability outside [0, 1).
Variable sequence_dropout(const Variable& x, double probability, uint64_t key, int64_t first_step = 0);

/// The same for x [.., H] of any rank, its rows numbered in row-major order, as one step.
Variable dropout(const Variable& x, double probability, uint64_t key);

/// Whether dropout acts in this pass: in training, under a key, with a probability above 0.
bool drops(const Module& module, double probability, const std::optional<uint64_t>& key);
/// sequence_dropout inside a module: x as it is unless it `drops`.
Variable dropout_in_training(const Module& module, const Variable& x, double probability,
                             const std::optional<uint64_t>& key, int64_t first_step = 0);

/// A key for one of several uses of dropout under one key: the masks of two uses are independent. No key stays none.
std::optional<uint64_t> derived_key(const std::optional<uint64_t>& key, uint64_t use);

/// Layer normalisation over the last axis (Ba, Kiros, Hinton 2016): y = (x - mean) / sqrt(variance + eps) weight +
/// bias, x and y [.., D], weight and bias [D], eps > 0. Saves x, weight and two numbers a row. Throws ShapeError when
/// the sizes do not fit, ValueError when the dtypes do not, or for eps.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps = 1e-5);

/// Root mean square normalisation over the last axis (Zhang, Sennrich 2019): y = x / sqrt(mean(x^2) + eps) weight, x
/// and y [.., D], weight [D], eps > 0. Saves x, weight and two numbers a row. Throws as layer_norm.
Variable rms_norm(const Variable& x, const Variable& weight, double eps = 1e-5);

struct CrossEntropyOptions {
  std::optional<int64_t> ignore_index;  ///< targets of this value count nothing
};
/// Mean over the counted targets of -log softmax(logits)[target], in nats: logits [.., V], targets int64 [..] -> [].
/// When nothing is counted the loss is 0 with zero gradient. Saves the softmax. Throws IndexError for a target outside
/// [0, V), ShapeError when targets do not have the shape of logits without V, ValueError unless they are int64.
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});
/// The same for each position, not averaged: [..]; 0 where ignored.
Variable cross_entropy_per_position(const Variable& logits, const Tensor& targets,
                                    const CrossEntropyOptions& options = {});
/// Mean squared error of two tensors of one shape -> []; of empty ones 0, with zero gradient. Throws ShapeError, with
/// both shapes, unless they are equal.
Variable mse(const Variable& prediction, const Variable& target);

}  // namespace carousel
