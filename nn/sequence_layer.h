#pragma once

#include <carousel/nn/lookup.h>
#include <carousel/nn/module.h>
#include <carousel/nn/state.h>

#include <functional>
#include <optional>
#include <string>

namespace carousel {

/// What a visitor sees of a layer's backward pass, a block of consecutive time steps at a time, from the last block to
/// the first. A layer with several parts shows each part's blocks in turn (Mamba: the scan's "h", then the
/// convolution's "conv"), and one that runs unrolled shows each entry of its state in a call of its own, without
/// activations: go by name. Tensors are time-major views [steps, B, ..] in the layer's own memory: look, copy, do not
/// keep.
struct BackwardView {
  std::string layer;                                     ///< path within the stack: "layers.0"
  int64_t first_step;                                    ///< the block is steps first_step .. first_step + steps - 1
  std::vector<std::pair<std::string, Tensor>> saved;     ///< activations by name: Elman "h"; LSTM "i", "f", "g", ...
  std::vector<std::pair<std::string, Tensor>> gradient;  ///< d loss / d state[t] by name, the total derivative
};
using BackwardVisitor = std::function<void(const BackwardView&)>;

/// What a whole-sequence call may be told besides its input.
struct SequenceOptions {
  Tensor reset = {};    ///< bool [B, T]: true zeroes the row's state before step t, and cuts the gradient there
  Tensor lengths = {};  ///< int64 [B]: row b ends after lengths[b] steps; later outputs are zero, the state stays
  /// Dropout of this pass is a pure function of key, layer, step, row and feature; none: no dropout even in training.
  std::optional<uint64_t> dropout_key = {};
  /// Whether a stack keeps no more of a layer than its input and makes the rest again in backward: the same numbers for
  /// less memory and a second forward pass. The layers and their mode must stay as they are until then.
  bool recompute = false;
  /// Without it a stack leaves the state of its result empty, which of attention is keys and values of every layer: for
  /// who reads each window afresh.
  bool final_state = true;
  BackwardVisitor visitor = {};  ///< called during backward; costs nothing when empty
  std::string path = {};         ///< set by a stack: names the layer to the visitor
};

/// The same for one step.
struct StepOptions {
  Tensor reset = {};  ///< bool [B]
  std::optional<uint64_t> dropout_key = {};
  int64_t time = 0;  ///< the step's number in its sequence, for dropout
};

struct StepResult {
  Variable output;  ///< [B, H]
  State state;
};

struct SequenceResult {
  Variable output;  ///< [B, T, H]; in memory it may be time-major
  State state;      ///< after the last step
};

/// One entry of a layer's State.
struct StateShape {
  std::string name;
  Shape shape;  ///< [B, ..]; an axis of size 0 grows with the sequence (keys and values of attention)
  DType dtype;  ///< int64: bookkeeping, one of State::counts()
};

/// One way to remember. `step` is the readable definition; `forward` over a whole sequence is the same unrolled, unless
/// a layer has a fused kernel, which tests hold to the unrolled one.
class SequenceLayer : public Module {
 public:
  virtual int64_t input_size() const = 0;   ///< D
  virtual int64_t output_size() const = 0;  ///< H
  virtual DType dtype() const = 0;
  /// Numbers that one row carries after t tokens.
  virtual int64_t state_size(int64_t t) const = 0;
  /// Multiplications of one row's step that reads token t, each with its addition. Here one for each element of a
  /// matrix (or larger) parameter; layers that also multiply states say more.
  virtual int64_t multiply_adds(int64_t t) const;
  /// What a State of `batch` rows holds, in order.
  virtual std::vector<StateShape> state_shapes(int64_t batch) const = 0;
  State initial_state(int64_t batch) const;  ///< zeros of state_shapes(batch), without history

  /// x_t [B, D], state -> (y_t [B, H], state). Throws ShapeError, ValueError or IndexError naming what does not fit.
  virtual StepResult step(const Variable& x_t, const State& state, const StepOptions& options = {}) const = 0;

  /// x [B, T, D], state -> (y [B, T, H], state). T = 0 gives an empty output, whose gradients are zero, and the state
  /// as it came. What stands in x behind the end of a row (`lengths`) does not matter, be it NaN. Throws as `step`
  /// does.
  virtual SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options = {}) const;

  /// forward of x.rows(). A layer that begins with a product may multiply the table instead where that is shorter.
  virtual SequenceResult forward_lookup(const Lookup& x, const State& state, const SequenceOptions& options = {}) const;

  /// forward by the definition: one step() after another.
  SequenceResult unroll(const Variable& x, const State& state, const SequenceOptions& options = {}) const;
};

/// Whether step t of row b stands before the row's end, t < lengths[b]: bool [B, steps].
Tensor before_end(const Tensor& lengths, int64_t steps);
/// x [B, T, ..] with zeros behind the end of each row, and no gradient there; as it came without lengths. What a weight
/// is multiplied with, since its gradient would gather 0 times what stands there.
Variable zero_after_end(const Variable& x, const Tensor& lengths);

/// The state with the rows where `reset` [B] is true zeroed and cut from their past; as it came when `reset` is
/// undefined. How a step() begins.
State reset_rows(const State& state, const Tensor& reset);

/// Throws ShapeError, ValueError or (for a missing entry of the state) IndexError unless x, state, reset and lengths
/// fit.
void check_sequence(std::string_view layer, const SequenceLayer& self, const Variable& x, const State& state,
                    const SequenceOptions& options);
void check_sequence(std::string_view layer, const SequenceLayer& self, const Lookup& x, const State& state,
                    const SequenceOptions& options);
/// The same for one step: x_t [B, D].
void check_step(std::string_view layer, const SequenceLayer& self, const Variable& x_t, const State& state,
                const StepOptions& options);
/// The part of check_sequence about the options alone: reset bool [B, T], and lengths.
void check_options(std::string_view operation, int64_t batch, int64_t steps, const SequenceOptions& options);
/// Throws unless `lengths` is undefined, or int64 [B] with values in [0, steps].
void check_lengths(std::string_view operation, const Tensor& lengths, int64_t batch, int64_t steps);

}  // namespace carousel
