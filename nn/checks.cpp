#include <carousel/nn/sequence_layer.h>

namespace carousel {
namespace {

// An axis that is empty in the initial state (keys and values of attention) may have grown since.
bool fits(const Shape& got, const Shape& initial) {
  if (got.rank() != initial.rank() || got[0] != initial[0]) return false;
  for (int axis = 1; axis < initial.rank(); ++axis) {
    if (initial[axis] != 0 && got[axis] != initial[axis]) return false;
  }
  return true;
}

void check_state(std::string_view layer, const SequenceLayer& self, const State& state, int64_t batch) {
  for (const auto& [name, shape, dtype] : self.state_shapes(batch)) {
    const Tensor& value = dtype == DType::int64 ? state.count(name) : state[name].value();
    check<ShapeError>(fits(value.shape(), shape), layer, "state {} must have shape {}: got {}", name, to_string(shape),
                      to_string(value.shape()));
    check<ValueError>(value.dtype() == dtype, layer, "state {} must be {}: got {}", name, to_string(dtype),
                      to_string(value.dtype()));
  }
}

void check_input(std::string_view layer, const SequenceLayer& self, const Variable& x, std::string_view axes,
                 int rank) {
  check<ValueError>(x.defined(), layer, "input must be defined: got an undefined Variable");
  check<ShapeError>(x.rank() == rank && x.shape().back() == self.input_size(), layer,
                    "input must be {} with D = {}: got {}", axes, self.input_size(), to_string(x.shape()));
  check<ValueError>(x.dtype() == self.dtype(), layer, "input must be {}, as the parameters: got {}",
                    to_string(self.dtype()), to_string(x.dtype()));
}

void check_option(std::string_view layer, std::string_view name, const Tensor& option, const Shape& shape,
                  DType dtype) {
  if (!option.defined()) return;
  check<ShapeError>(option.shape() == shape, layer, "{} must have shape {}: got {}", name, to_string(shape),
                    to_string(option.shape()));
  check<ValueError>(option.dtype() == dtype, layer, "{} must be {}: got {}", name, to_string(dtype),
                    to_string(option.dtype()));
}

}  // namespace

void check_step(std::string_view layer, const SequenceLayer& self, const Variable& x_t, const State& state,
                const StepOptions& options) {
  check_input(layer, self, x_t, "[B, D]", 2);
  check_state(layer, self, state, x_t.size(0));
  check_option(layer, "reset", options.reset, {x_t.size(0)}, DType::boolean);
}

void check_sequence(std::string_view layer, const SequenceLayer& self, const Variable& x, const State& state,
                    const SequenceOptions& options) {
  check_input(layer, self, x, "[B, T, D]", 3);
  check_state(layer, self, state, x.size(0));
  check_options(layer, x.size(0), x.size(1), options);
}

void check_sequence(std::string_view layer, const SequenceLayer& self, const Lookup& x, const State& state,
                    const SequenceOptions& options) {
  check_input(layer, self, x.table, "a table [V, D]", 2);
  check<ShapeError>(x.tokens.rank() == 2, layer, "tokens must be [B, T]: got {}", to_string(x.tokens.shape()));
  check<ValueError>(x.tokens.dtype() == DType::int64, layer, "tokens must be int64: got {}",
                    to_string(x.tokens.dtype()));
  check_state(layer, self, state, x.tokens.size(0));
  check_options(layer, x.tokens.size(0), x.tokens.size(1), options);
}

void check_options(std::string_view operation, int64_t batch, int64_t steps, const SequenceOptions& options) {
  check_option(operation, "reset", options.reset, {batch, steps}, DType::boolean);
  check_lengths(operation, options.lengths, batch, steps);
}

void check_lengths(std::string_view operation, const Tensor& lengths, int64_t batch, int64_t steps) {
  check_option(operation, "lengths", lengths, {batch}, DType::int64);
  if (!lengths.defined()) return;
  for (const int64_t length : lengths.to_vector<int64_t>()) {
    check<ValueError>(length >= 0 && length <= steps, operation, "lengths must be in [0, {}]: got {}", steps, length);
  }
}

}  // namespace carousel
