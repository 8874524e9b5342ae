#pragma once

#include <carousel/nn/sequence_layer.h>

namespace carousel {

/// The recurrence without a matrix, over a whole sequence in one node, for layers whose step is one:
///   h_t = a_t h_{t-1} + b_t,
/// element by element. b [B, T, H]; a [H], the same for all rows and steps, or [B, T, H]; h0 [B, H] -> output h
/// [B, T, H], time-major in memory, and the state "h" [B, H]. `options` are a layer's: masks and visitor act as
/// everywhere, dropout there is none. Behind the end of a row a and b do not matter, and their gradient is zero.
/// Backward saves a, h0, h and the masks; it shows a visitor the saved "h", the saved a as "decay" where it is of each
/// step, and the total gradient "h". Throws ShapeError for shapes, ValueError for dtypes that differ and for lengths
/// outside [0, T].
SequenceResult linear_recurrence(const Variable& a, const Variable& b, const Variable& h0,
                                 const SequenceOptions& options = {});

}  // namespace carousel
