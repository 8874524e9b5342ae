#include <carousel/nn/recomputed_pass.h>

#include <carousel/autograd/recompute.h>

#include <span>

namespace carousel {
namespace {

using Values = std::span<const Variable>;

// A state as a list, in the order of `shapes`, and back.
void append(Variables& values, const State& state, const std::vector<StateShape>& shapes) {
  for (const StateShape& entry : shapes) {
    values.push_back(entry.dtype == DType::int64 ? Variable(state.count(entry.name)) : state[entry.name]);
  }
}

State state_of(Values values, const std::vector<StateShape>& shapes) {
  State state;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].dtype == DType::int64) {
      state.set_count(shapes[i].name, values[i].value());
    } else {
      state.set(shapes[i].name, values[i]);
    }
  }
  return state;
}

// `pass(input, state, options)`, where the input is `x`, one Variable or two.
template <class Pass>
SequenceResult recomputed(const SequenceLayer& layer, Variables x, const State& state, const SequenceOptions& options,
                          const Pass& pass) {
  const std::vector<StateShape> shapes = layer.state_shapes(0);  // for the names
  SequenceOptions others = options;
  others.recompute = false;  // what is made again is all needed at once
  others.reset = others.lengths = Tensor();

  Variables inputs = std::move(x);
  const size_t masks = inputs.size();
  inputs.insert(inputs.end(), {options.reset, options.lengths});
  append(inputs, state, shapes);
  const auto function = [&layer, training = layer.training(), shapes, others, masks, pass](Values in) {
    check<ValueError>(layer.training() == training, "recompute",
                      "the layer must be in the mode of the forward pass until backward: it was in {}",
                      training ? "training" : "evaluation");
    SequenceOptions own = others;
    own.reset = in[masks].value();
    own.lengths = in[masks + 1].value();
    const SequenceResult result = pass(in.first(masks), state_of(in.subspan(masks + 2), shapes), own);
    Variables results{result.output};
    if (own.final_state) append(results, result.state, shapes);
    return results;
  };
  const Variables results = carousel::recomputed(function, inputs);
  return {results.front(), options.final_state ? state_of(Values(results).subspan(1), shapes) : State()};
}

}  // namespace

SequenceResult recomputed_pass(const SequenceLayer& layer, const Variable& x, const State& state,
                               const SequenceOptions& options) {
  return recomputed(layer, {x}, state, options,
                    [&layer](Values in, const State& own_state, const SequenceOptions& own) {
                      return layer.forward(in[0], own_state, own);
                    });
}

SequenceResult recomputed_pass(const SequenceLayer& layer, const Lookup& x, const State& state,
                               const SequenceOptions& options) {
  return recomputed(layer, {x.table, Variable(x.tokens)}, state, options,
                    [&layer](Values in, const State& own_state, const SequenceOptions& own) {
                      return layer.forward_lookup({in[0], in[1].value()}, own_state, own);
                    });
}

}  // namespace carousel
