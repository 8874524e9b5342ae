#pragma once

#include <carousel/nn/sequence_layer.h>

namespace carousel {

/// What a selective scan is made of: B batch rows, T steps, I channels, N states of each.
struct ScanTerms {
  Variable u;   ///< [B, T, I], what goes in
  Variable dt;  ///< [B, T, I], how long each step lasts
  Variable a;   ///< [I, N], below 0: rates of decay
  Variable b;   ///< [B, T, N], how much goes in; or [I, N], of each channel, the same at all steps
  Variable c;   ///< of b's shape: how much comes out
  Variable d;   ///< [I], past the states
};

struct ScanResult {
  Variable output;  ///< [B, T, I], time-major in memory
  Variable state;   ///< [B, I, N], after the last step
};

/// The selective scan of Mamba (Gu, Dao 2023, Algorithm 2), one node for the sequence:
///   h_t[i,n] = exp(dt_t[i] A[i,n]) h_{t-1}[i,n] + dt_t[i] B_t[n] u_t[i],   y_t[i] = sum_n C_t[n] h_t[i,n] + D[i]
///   u_t[i].
/// A enters by exp(dt A), B by dt B, as in the authors' program; the paper writes the exact integral for B too. With b
/// and c [I, N] this is S4D-real (Gu and others 2022). h0 is [B, I, N].
///
/// Of the options: a reset zeroes the row's state; behind the end of a row outputs are zero, and its state stays; a
/// visitor sees the saved "u", "dt", "decay" = exp(dt A) [steps, B, I, N], "B" and "C" ([steps, B, N], or [steps, B, I,
/// N] where they are fixed), and the total gradient "h" [steps, B, I, N], up to 32 steps a call, the last ones first.
/// Saves all terms, the masks, and the state before every 16th step; backward makes the others again. Throws ShapeError
/// or ValueError for what does not fit.
ScanResult selective_scan(const ScanTerms& terms, const Variable& h0, const SequenceOptions& options = {});

}  // namespace carousel
