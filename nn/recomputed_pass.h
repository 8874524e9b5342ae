#pragma once

#include <carousel/nn/sequence_layer.h>

namespace carousel {

/// layer.forward(x, state, options), of which backward keeps x, the state and the masks and makes the rest again
/// (autograd/recompute.h). The layer must live until backward, which throws ValueError when it changed between training
/// and evaluation since, or when what is kept was changed in place.
SequenceResult recomputed_pass(const SequenceLayer& layer, const Variable& x, const State& state,
                               const SequenceOptions& options);
/// The same of layer.forward_lookup.
SequenceResult recomputed_pass(const SequenceLayer& layer, const Lookup& x, const State& state,
                               const SequenceOptions& options);

}  // namespace carousel
