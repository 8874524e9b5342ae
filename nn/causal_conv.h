#pragma once

#include <carousel/nn/sequence_layer.h>

namespace carousel {

struct CausalConvResult {
  Variable output;  ///< [B, T, I], time-major in memory
  Variable window;  ///< [B, I, W-1], the last W - 1 inputs, oldest first
};

/// Convolution of each channel on its own over the last W inputs, one node for the sequence:
///   y_t[i] = bias[i] + sum_k weight[i, k] x_{t-W+1+k}[i],  k = 0 .. W - 1.
/// x [B, T, I]; window [B, I, W-1], the inputs before the first step, oldest first; weight [I, W]; bias [I]. Of a
/// sequence shorter than W - 1 the window after it keeps what is left of the one before. Of the options: a reset turns
/// the row's past into zeros; behind the end of a row outputs are zero, and its window stays; a visitor sees the saved
/// "conv", the window after each step, and its gradient "conv", up to 32 steps a call, the last ones first, zero behind
/// a row's end. Saves x, window, weight and the masks. Throws ShapeError or ValueError for what does not fit.
CausalConvResult causal_conv(const Variable& x, const Variable& window, const Variable& weight, const Variable& bias,
                             const SequenceOptions& options = {});

}  // namespace carousel
