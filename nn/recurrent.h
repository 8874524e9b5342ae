#pragma once

#include <carousel/autograd/record.h>
#include <carousel/nn/sequence_layer.h>

/// Inside a fused recurrent layer: what stands around its kernel, whatever the kernel computes. Sequences are
/// time-major here, [T, B, ..] without gaps, and G is the width of what the kernel gets for a step (H, or its gates).
namespace carousel::recurrent {

/// Steps that a visitor is shown at once, so that looking at a long sequence takes little memory.
constexpr int64_t visited_steps = 32;

/// [B, T, ..] as [T, B, ..] without gaps; undefined stays undefined.
Tensor time_major(const Tensor& x);
/// [T, B, ..] as the matrix [T B, ..].
Tensor all_rows(const Tensor& sequence);

/// Where rows of a batch are cut from their past, and where they end.
struct Breaks {
  Tensor reset;    ///< bool [T, B] or undefined
  Tensor lengths;  ///< int64 [B] or undefined

  static Breaks of(const SequenceOptions& options);
  const bool* reset_from(int64_t step) const;  ///< for a kernel; null when undefined
  const int64_t* lengths_or_null() const;

  /// `inputs` [T, B, D] with zeros for what stands behind the end of a row, which may be anything.
  Tensor without_padding(const Tensor& inputs) const;
  /// The states [steps, B, H] that lie before steps first, first + 1, .. as those steps saw them: zero where the row
  /// was reset or had ended. What was cut off may be infinite, and 0 times that is NaN.
  Tensor seen(const Tensor& states, int64_t first) const;
};

/// The same kept for backward, which refuses to run when a mask was changed in place since.
class SavedBreaks {
 public:
  explicit SavedBreaks(const Breaks& breaks) : reset_(breaks.reset), lengths_(breaks.lengths) {}
  Breaks get() const { return {.reset = reset_.get(), .lengths = lengths_.get()}; }

 private:
  Saved reset_, lengths_;
};

/// What the kernel begins with, inputs W^T + bias_ih + bias_hh: inputs [T, B, D], W [G, D] -> [T, B, G].
Tensor project(const Tensor& inputs, const Tensor& weight_ih, const Tensor& bias_ih, const Tensor& bias_hh);

/// The gradients of `project` from dz [T, B, G]. The two biases are only ever added, so they share theirs.
Tensor input_gradient(const Tensor& dz, const Tensor& weight_ih);      ///< [B, T, D]
Tensor input_weight_gradient(const Tensor& dz, const Tensor& inputs);  ///< [G, D]
Tensor bias_gradient(const Tensor& dz);                                ///< [G]

/// The gradient of W_hh [G, H] where each step adds W_hh h_{t-1}: the sum over steps and rows of dz_t h_{t-1}^T. The
/// states are h0 [B, H], then h [T, B, H].
Tensor recurrent_weight_gradient(const Tensor& dz, const Tensor& h0, const Tensor& h, const Breaks& breaks);

}  // namespace carousel::recurrent
