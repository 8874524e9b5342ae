#pragma once

#include <carousel/autograd/variable.h>

namespace carousel {

/// concatenate({past, more}, axis) for values that grow at every step: the result lies in memory with room behind it,
/// which the next call fills, so that n steps copy O(n) numbers in all. Values stay values: the room behind `past` is
/// filled once, by the first call, and another that goes on from the same `past` copies it. Shapes as for concatenate.
/// Safe for several threads.
Tensor grow(const Tensor& past, const Tensor& more, int64_t axis);

/// The same for Variables: concatenate where that must be recorded. An empty `past` without history gives `more`.
Variable grow(const Variable& past, const Variable& more, int64_t axis);

}  // namespace carousel
