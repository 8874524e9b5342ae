#pragma once

#include <carousel/nn/character_model.h>
#include <carousel/optim/optimizer.h>

#include <functional>
#include <variant>
#include <vector>

/// Truncated backpropagation through time, BPTT(k1, k2) (Williams, Peng 1990; Sutskever 2013, section 2.8.6): an update
/// after every k1 steps, from the loss of those steps, whose gradient goes back exactly k2 steps, k2 >= k1.
namespace carousel {

/// What is read piece by piece: a layer, whose inputs are [B, T, D], or a character model, whose inputs are tokens
/// int64 [B, T] and whose outputs are logits. It refers to it.
class StatefulModel {
 public:
  StatefulModel(const SequenceLayer& layer) : model_(&layer) {}   // NOLINT: either is one
  StatefulModel(const CharacterModel& model) : model_(&model) {}  // NOLINT

  SequenceResult forward(const Tensor& inputs, const State& state, const SequenceOptions& options) const;
  State initial_state(int64_t batch) const;
  bool carries() const;  ///< false: a model with a context, which begins each window afresh

 private:
  std::variant<const SequenceLayer*, const CharacterModel*> model_;
};

/// What a window begins with.
enum class Carry {
  state,    ///< the state as it was computed there, without its past
  nothing,  ///< the initial state
};

struct BpttConfig {
  int64_t update_every;  ///< k1: steps that a call brings, at least 1
  int64_t back;          ///< k2: steps that a gradient goes back, at least k1; equal to it: windows side by side
  Carry carry = Carry::state;
};

/// What a window leaves for the next, a value as State is: what a checkpoint keeps. Its size depends on k2, not on what
/// was read. A text begins with `{.start = model.initial_state(B)}`.
struct BpttMemory {
  State start;         ///< where the next window begins: k2 - k1 steps ago, or at the text's beginning
  Tensor inputs = {};  ///< what was read since, [B, steps, ..]; undefined: nothing
  Tensor reset = {};   ///< bool [B, steps]; undefined: no resets
};

struct BpttResult {
  Variable output;  ///< [B, T, ..], of the new steps
  State state;      ///< after the last one
  BpttMemory memory;
};

/// `forward` of the next T <= k1 steps, inputs [B, T, ..], such that a loss of its output sends its gradient back k2
/// steps from the last one:
///
///   h_{t-k2} = what was computed there, a constant;  h_s = f(x_s, h_{s-1}) for s = t-k2+1 .. t;  output = y_{t-T+1} ..
///   y_t.
///
/// With k2 > k1 the k2 - k1 steps before are read again, since an update has changed the parameters in between: every
/// h_s is that of the present ones, and the constant the one that was computed last. With k2 = k1 nothing is read twice
/// and nothing copied: it is model.forward of the carried state. Backward saves what the model's does for k2 steps,
/// whatever the text's length. A memory.start that requires a gradient gets it as long as windows begin there; it must
/// be a leaf, since a history behind it would be walked by more than one backward. A call with fewer steps than k1 goes
/// back by as much less than k2.
///
/// options.reset, bool [B, T], says where texts begin: no gradient passes there. options.dropout_key is drawn anew for
/// each call. options.visitor counts steps from the window's beginning. Throws ValueError for a config that makes no
/// sense, more steps than it allows, and options.lengths (mark targets as ignored instead); ShapeError for a mask that
/// does not fit; and what the model throws.
BpttResult forward_truncated(const StatefulModel& model, const Tensor& inputs, const BpttMemory& memory,
                             const BpttConfig& config, const SequenceOptions& options = {});

/// A whole text, B rows side by side.
struct BpttText {
  Tensor inputs;      ///< [B, N, ..]
  Tensor reset = {};  ///< bool [B, N]
  State start = {};   ///< of the first step; empty: the initial state
};

/// How it is learnt.
struct BpttTraining {
  BpttConfig windows;
  std::function<double(int64_t update)> rate;  ///< of updates counted from 0: a schedule
  StepLimits limits = {};
  std::optional<uint64_t> dropout_key = {};  ///< each update has its own from it; none: no dropout
};

struct BpttTrace {
  std::vector<double> losses, norms;  ///< of each update, from before it
  State state;                        ///< after the last step, without history
};

/// The loss [] of the outputs [B, T, ..] of the steps first .. first + T - 1.
using StepsLoss = std::function<Variable(const Variable& output, int64_t first)>;

/// Reads the text once and updates after every k1 steps, and after those that are left at its end: zero_grad, backward
/// through k2 steps, step. Throws ValueError, before that update, for a loss or a gradient that is not finite, and what
/// forward_truncated throws.
///
///   train_truncated(model, optimizer, {.inputs = tokens},
///                   [&](const Variable& logits, int64_t first) {
///                     return cross_entropy(logits, targets.slice(1, {first, first + logits.size(1)}));
///                   },
///                   {.windows = {.update_every = 25, .back = 100}, .rate = [](int64_t) { return 2e-3; }});
BpttTrace train_truncated(const StatefulModel& model, Optimizer& optimizer, const BpttText& text, const StepsLoss& loss,
                          const BpttTraining& training);

}  // namespace carousel
