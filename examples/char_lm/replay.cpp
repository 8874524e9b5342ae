// Repeats a step whose loss or gradient was not finite, and finds out where that began.
#include <carousel/autograd/variable.h>
#include <carousel/nn/saved_model.h>
#include <carousel/optim/clip.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "char_lm/bundle.h"
#include "char_lm/checkpoints.h"
#include "char_lm/report.h"

namespace carousel::examples {

namespace {

// The model and its carried state, in another type of numbers.
Archive converted(const Archive& bundle, DType dtype) {
  Archive result = bundle;
  result.texts["model/dtype"] = to_string(dtype);
  for (auto& [name, tensor] : result.tensors) {
    const bool counts = name.starts_with("model/") || name.starts_with("carried/value/");
    if (counts && is_floating(tensor.dtype())) tensor = tensor.to(dtype);
  }
  return result;
}

// What visitors saw that is not finite: of each layer the first step whose activations, and the last whose gradient.
class Findings {
 public:
  void look(const BackwardView& view) {
    for (const auto& [name, values] : view.saved) {
      for (int64_t t = 0; t < values.size(0); ++t) {
        if (all_finite(values.select(0, t))) continue;
        const int64_t step = view.first_step + t;
        const auto [place, is_new] = forward_.emplace(view.layer, Place{name, step});
        if (!is_new && step < place->second.step) place->second = {name, step};
        break;
      }
    }
    if (!backward_.empty()) return;  // what comes later inherits it
    for (const auto& [name, values] : view.gradient) {
      for (int64_t t = values.size(0) - 1; t >= 0 && backward_.empty(); --t) {
        if (!all_finite(values.select(0, t))) backward_ = place_text(view.layer, {name, view.first_step + t});
      }
    }
  }
  // The lowest layer comes first; a loss that is finite was reached without a fault.
  std::string forward() const {
    return forward_.empty() ? "" : place_text(forward_.begin()->first, forward_.begin()->second);
  }
  const std::string& backward() const { return backward_; }

 private:
  struct Place {
    std::string name;
    int64_t step;
  };
  static std::string place_text(const std::string& layer, const Place& place) {
    return fmt::format("{}, {} at time step {}", layer, place.name, place.step);
  }

  std::map<std::string, Place> forward_;
  std::string backward_;
};

// What a repetition came to.
struct Outcome {
  std::string operation = {};  // that made the first number that is none; empty when all are finite
  std::string place = {};
  double loss = 0, norm = 0;
};

// Where activations and gradients stop being finite. A loss that is not is propagated all the same.
std::string find_place(const CharacterModel& model, const Archive& bundle) {
  Findings findings;
  State state = training_state(bundle).carried;
  for (const Pass& pass : passes_of(bundle)) {
    SequenceOptions options;
    options.visitor = [&findings](const BackwardView& view) { findings.look(view); };
    const LossResult result = loss_of(model, pass, state, options);
    result.loss.backward();
    state = model.carry(result.state);
  }
  return findings.forward().empty() ? findings.backward() : findings.forward();
}

bool has_finite_weights(const Archive& bundle) {
  return std::all_of(bundle.tensors.begin(), bundle.tensors.end(), [](const auto& named) {
    return !named.first.starts_with("model/") || !is_floating(named.second.dtype()) || all_finite(named.second);
  });
}

Outcome replay_in(const Archive& bundle) {
  const SavedModel saved = make_model(bundle);
  check_carried(bundle, saved.model->initial_state(passes_of(bundle).front().window.inputs.size(0)));
  Outcome outcome;
  try {
    const AnomalyMode watching;
    State state = training_state(bundle).carried;
    outcome.loss = run_passes(*saved.model, passes_of(bundle), state);
    outcome.norm = grad_norm(saved.model->parameters());
    check<NonFiniteError>(std::isfinite(outcome.norm), "replay", "the norm of all gradients overflows: got {}",
                          std::abs(outcome.norm));
  } catch (const ValueError& error) {
    outcome.operation = error.what();
    outcome.place = find_place(*saved.model, bundle);
  }
  return outcome;
}

void print_outcome(const std::string& type, const Outcome& outcome) {
  if (outcome.operation.empty()) {
    fmt::print("in {}: all numbers are finite: loss {:.6g}, norm of the gradients {:.6g}\n", type, outcome.loss,
               outcome.norm);
    return;
  }
  fmt::print("in {}: {}\n", type, outcome.operation);
  if (!outcome.place.empty()) fmt::print("  first seen in {}\n", outcome.place);
}

}  // namespace

int replay(const ReplayOptions& options) {
  print_header();
  const Archive bundle = open_checkpoint("bundle", options.bundle);
  fmt::print("step {}: {}\n{}", training_state(bundle).step + 1, failure_of(bundle), statistics_of(bundle));
  Outcome single;
  {
    const FlushDenormals as_in_training;
    single = replay_in(bundle);
  }
  print_outcome("float32", single);
  const Outcome twice = replay_in(converted(bundle, DType::float64));
  print_outcome("float64", twice);
  fmt::print("{}\n", !has_finite_weights(bundle) ? "the weights were not finite before the step"
                     : single.operation.empty()  ? "not seen again: the step is finite here, in float32 too"
                     : twice.operation.empty()
                         ? "overflow: numbers that float32 cannot hold; they are finite in float64"
                         : "mathematics: not finite in float64 either");
  return 0;
}

}  // namespace carousel::examples
