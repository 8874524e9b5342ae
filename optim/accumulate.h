#pragma once

#include <carousel/autograd/variable.h>

#include <optional>

namespace carousel {

/// How many targets a loss counts: those that are not `ignore_index` (CrossEntropyOptions).
int64_t counted_targets(const Tensor& targets, const std::optional<int64_t>& ignore_index = {});

/// How many targets a micro-batch counts, and all micro-batches of one update together.
struct Share {
  int64_t counted;
  int64_t of_all;
};

/// Gradient accumulation: backward of loss counted / of_all, `loss` being the mean over the micro-batch's counted
/// targets, and the value of that product. Over the micro-batches of an update the values add up to the loss of one
/// batch that holds them all, and so do the gradients: a short micro-batch counts for what it is. (Means of means, the
/// usual mistake, weigh its targets more.) One of which nothing counts is left out, whatever its loss is, and where
/// nothing counts at all no parameter gets a gradient. Throws ValueError unless 0 <= counted <= of_all, and what
/// backward throws.
///
///   optimizer.zero_grad();
///   for (const MicroBatch& part : parts) {
///     loss += accumulate(model.loss(part.inputs, part.targets, ..).loss, {part.counted, counted_in_all});
///   }
///   optimizer.step(rate);
double accumulate(const Variable& loss, const Share& share);

}  // namespace carousel
