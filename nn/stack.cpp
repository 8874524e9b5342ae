#include <carousel/nn/stack.h>

#include <carousel/nn/functional.h>
#include <carousel/nn/recomputed_pass.h>

namespace carousel {
namespace {

enum class KeyUse : uint64_t { layer, between };  // a layer's own dropout, and the dropout of what leaves it

// Keys of one pass must differ by layer and use, or all masks would be the same.
std::optional<uint64_t> key_of(const std::optional<uint64_t>& key, size_t layer, KeyUse use) {
  return derived_key(key, 2 * layer + static_cast<uint64_t>(use));
}

SequenceResult plain_pass(const SequenceLayer& layer, const Variable& x, const State& state,
                          const SequenceOptions& options) {
  return layer.forward(x, state, options);
}

SequenceResult plain_pass(const SequenceLayer& layer, const Lookup& x, const State& state,
                          const SequenceOptions& options) {
  return layer.forward_lookup(x, state, options);
}

}  // namespace

Stack::Stack(std::vector<std::unique_ptr<SequenceLayer>> layers, double dropout)
    : layers_(std::move(layers)), dropout_(dropout) {
  check<ValueError>(!layers_.empty(), "Stack", "needs at least one layer: got none");
  check<ValueError>(dropout >= 0 && dropout < 1, "Stack", "dropout must be in [0, 1): got {}", dropout);
  for (size_t i = 0; i < layers_.size(); ++i) {
    check<ShapeError>(i == 0 || layers_[i]->input_size() == layers_[i - 1]->output_size(), "Stack",
                      "input of layer {} must be the output of the one below: got {} and {}", i,
                      layers_[i]->input_size(), i == 0 ? 0 : layers_[i - 1]->output_size());
    add_child("layers." + std::to_string(i), *layers_[i]);
  }
}

int64_t Stack::input_size() const { return layers_.front()->input_size(); }
int64_t Stack::output_size() const { return layers_.back()->output_size(); }
DType Stack::dtype() const { return layers_.front()->dtype(); }

int64_t Stack::state_size(int64_t t) const {
  int64_t size = 0;
  for (const auto& layer : layers_) size += layer->state_size(t);
  return size;
}

int64_t Stack::multiply_adds(int64_t t) const {
  int64_t count = 0;
  for (const auto& layer : layers_) count += layer->multiply_adds(t);
  return count;
}

std::vector<StateShape> Stack::state_shapes(int64_t batch) const {
  std::vector<StateShape> shapes;
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (const StateShape& own : layers_[i]->state_shapes(batch)) {
      shapes.push_back({std::to_string(i) + "." + own.name, own.shape, own.dtype});
    }
  }
  return shapes;
}

StepResult Stack::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  StepResult whole = {x_t, {}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = std::to_string(i);
    StepOptions own = options;
    own.dropout_key = key_of(options.dropout_key, i, KeyUse::layer);
    StepResult result = layers_[i]->step(whole.output, state.part(name), own);
    whole.output = between(result.output, i, options.dropout_key, options.time);
    whole.state.set_part(name, result.state);
  }
  return whole;
}

template <class Input>
SequenceResult Stack::run(const Input& x, const State& state, const SequenceOptions& options) const {
  SequenceResult whole;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = std::to_string(i);
    SequenceOptions own = options;
    own.dropout_key = key_of(options.dropout_key, i, KeyUse::layer);
    own.path = (options.path.empty() ? "" : options.path + ".") + "layers." + name;
    // Backward begins with the last layer: what it has recorded would be made again at once.
    const bool again = options.recompute && i + 1 < layers_.size();
    const auto pass = [this, i, again, &own, part = state.part(name)](const auto& input) {
      return again ? recomputed_pass(*layers_[i], input, part, own) : plain_pass(*layers_[i], input, part, own);
    };
    SequenceResult result = i == 0 ? pass(x) : pass(whole.output);
    whole.output = between(result.output, i, options.dropout_key, 0);
    if (options.final_state) whole.state.set_part(name, result.state);
  }
  return whole;
}

SequenceResult Stack::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  return run(x, state, options);
}

SequenceResult Stack::forward_lookup(const Lookup& x, const State& state, const SequenceOptions& options) const {
  return run(x, state, options);
}

Variable Stack::between(const Variable& output, size_t layer, const std::optional<uint64_t>& key,
                        int64_t first_step) const {
  if (layer + 1 == layers_.size()) return output;
  return dropout_in_training(*this, output, dropout_, key_of(key, layer, KeyUse::between), first_step);
}

}  // namespace carousel
