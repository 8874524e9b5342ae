#pragma once

#include <carousel/autograd/record.h>
#include <carousel/nn/sequence_layer.h>

#include <algorithm>
#include <limits>

/// Inside a fused recurrent layer: what stands around its kernel, whatever the kernel computes. Sequences are
/// time-major here, [T, B, ..] without gaps, and G is the width of what the kernel gets for a step (H, or its gates).
namespace carousel::kernels {
struct Recurrence;
struct SequenceShape;
}  // namespace carousel::kernels
namespace carousel::recurrent {

/// Steps that a visitor is shown at once, so that looking at a long sequence takes little memory.
constexpr int64_t visited_steps = 32;

/// Steps of a sequence that a kernel goes through in one call.
struct Block {
  int64_t first, steps;
};
/// Those steps of a sequence [T, ..].
Tensor steps_of(const Tensor& sequence, const Block& block);

/// [B, T, ..] as [T, B, ..] without gaps; undefined stays undefined.
Tensor time_major(const Tensor& x);
/// x without gaps; undefined stays undefined.
Tensor without_gaps(const Tensor& x);
/// [T, B, ..] as the matrix [T B, ..]; a matrix as it is.
Tensor all_rows(const Tensor& sequence);

/// For a kernel: where step `t` of x [T, ..] begins, which has no gaps; null when x is undefined.
template <class T>
const T* data_or_null(const Tensor& x, int64_t t = 0) {
  return x.defined() ? x.data<T>() + t * x.strides()[0] : nullptr;
}
template <class T>
T* mutable_or_null(Tensor& x, int64_t t = 0) {
  return x.defined() ? x.mutable_data<T>() + t * x.strides()[0] : nullptr;
}

/// Where rows of a batch are cut from their past, and where they end.
struct Breaks {
  Tensor reset;    ///< bool [T, B] or undefined
  Tensor lengths;  ///< int64 [B] or undefined

  static Breaks of(const SequenceOptions& options);
  /// A block of a sequence [T, B, ..], for a kernel.
  kernels::SequenceShape shape(const Tensor& sequence, const Block& block) const;
  /// The same with states h [T, B, H].
  kernels::Recurrence recurrence(const Tensor& h, const Block& block) const;

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

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Gates [T, B, G H] one by one: [T, B, H] for each name.
NamedTensors gates_by_name(const Tensor& gates, const std::vector<std::string>& names);

/// Whoever looks at a backward pass, if anybody does.
struct Visit {
  BackwardVisitor visitor;
  std::string layer;

  /// The blocks that backward goes through, from the last one to the first: at most `at_once` steps at a time, or when
  /// somebody looks, `visited_steps`.
  std::vector<Block> blocks(int64_t steps, int64_t at_once = std::numeric_limits<int64_t>::max()) const;
  /// Memory for the gradients of the states [T, B, H] in a block; undefined when nobody looks.
  Tensor gradient_like(const Tensor& states, const Block& block) const;
  /// Shows the block's part of the `saved` sequences [T, ..], and the gradients [steps, B, H] of that block.
  void show(const Block& block, NamedTensors saved, NamedTensors gradient) const;
};

/// What a fused layer reads: a sequence, or a table in which the vector of each step is looked up.
struct Input {
  Variable source;     ///< [B, T, D], or the table [V, D] with zeros in rows that no token reads
  Tensor tokens = {};  ///< int64 [B, T]; undefined for a sequence
};

/// What every fused layer leaves for backward. Sequences are time-major.
struct Kept {
  Kept(const Input& x, const Variable& start, const SequenceOptions& options, const Variable& w_ih,
       const Variable& w_hh);

  /// The blocks of backward: as many steps as make products large, so few that what lies between the kernel and those
  /// products stays in cache and costs little memory.
  std::vector<Block> blocks() const;

  SavedBreaks breaks;
  Saved inputs;  ///< [T, B, D], or the table [V, D]
  Saved tokens;  ///< int64 [T, B], or undefined
  Saved h0;      ///< [B, H]
  Saved h;       ///< [T, B, H]: set when it is there
  Saved weight_ih, weight_hh;
  Visit visit;
  bool wants_dx;
};

/// What the kernel begins with, W_ih x + bias for every step and row: [T, B, G]. Of a table, each row is multiplied
/// once and then looked up.
Tensor project(const Kept& kept, const Tensor& bias);

/// sum [G, D] += dz^T inputs: the gradient of a weight that multiplies inputs [.., D], from dz [.., G].
void add_weight_gradient(Tensor sum, const Tensor& dz, const Tensor& inputs);
Tensor bias_gradient(const Tensor& dz);  ///< [G], from dz [.., G]

/// The gradients of `project` from dz [T, B, G], gathered block by block. Of a table, dz is first added up for each of
/// its rows, in an order that does not depend on the thread count.
class InputGradients {
 public:
  explicit InputGradients(const Kept& kept);
  /// dz [steps, B, G] of one block.
  void add(const Block& block, const Tensor& dz);

  struct Sums {
    Tensor source;     ///< as Input::source; undefined when nobody wants it
    Tensor weight_ih;  ///< [G, D]
    Tensor bias;       ///< [G]
  };
  Sums sums();  ///< after all blocks

 private:
  void multiply(const Tensor& dz, const Tensor& inputs, const Tensor& dinputs);

  const Kept& kept_;
  Sums sums_;    // the source time-major
  Tensor rows_;  // [V, G], of a table
};

/// sum [G, H] += the gradient of W_hh where each step adds W_hh h_{t-1}: the sum over rows and the steps of the block
/// of dz_t h_{t-1}^T.
void add_recurrent_weight_gradient(const Tensor& sum, const Block& block, const Tensor& dz, const Kept& kept);

/// All gradients of a layer whose steps are given W_ih x_t + b_ih + W_hh h_{t-1} + b_hh, gathered block by block.
class LayerGradients {
 public:
  explicit LayerGradients(const Kept& kept);
  /// dz [steps, B, G] of one block.
  void add(const Block& block, const Tensor& dz);
  /// Of the input's source, of the states before the first step (`dstart`, in the layer's order), of W_ih, W_hh, b_ih
  /// and b_hh.
  Gradients all(const std::vector<Tensor>& dstart);

 private:
  const Kept& kept_;
  InputGradients input_;
  Tensor weight_hh_;
};

}  // namespace carousel::recurrent
