#pragma once

#include <carousel/autograd/variable.h>

#include <functional>
#include <span>

namespace carousel {

using RecomputedFunction = std::function<Variables(std::span<const Variable> inputs)>;

/// function(inputs), remembered by its inputs alone: what it records is forgotten at once, and made again when backward
/// comes there (Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost"), for a second forward
/// pass. All else is as without it, to the bit: values, the gradients of the inputs and of what `function` reads
/// besides (parameters), their sums, and what hooks and visitors inside see; those of the first pass are never called.
///
/// `function` must do the same each time: random numbers must come from a key, not from a generator that moves on. What
/// it refers to must live until backward; the inputs, which may be undefined, are kept. A tensor without history that
/// may be changed in place belongs among them, and so do intermediate results: those that the function holds itself get
/// their gradients too, but are freed by recursion. A result without history has none here either. Under NoGrad it is
/// the function.
///
/// Backward saves the inputs, and handles on what else the function reads that requires a gradient; it throws
/// ValueError when one of these was changed in place since, or when the results have other shapes or dtypes.
Variables recomputed(RecomputedFunction function, std::span<const Variable> inputs);

}  // namespace carousel
