#include <carousel/nn/bidirectional.h>

#include <carousel/autograd/index.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

// The lengths of `batch` rows, also of those that were given none.
std::vector<int64_t> row_lengths(const Tensor& lengths, int64_t batch, int64_t steps) {
  return lengths.defined() ? lengths.to_vector<int64_t>() : std::vector<int64_t>(static_cast<size_t>(batch), steps);
}

// Which row of [T B, ..] each step and row reads: its own steps backwards, padding where it stands. Doing it twice
// changes nothing, so the same index turns back.
Tensor turning_index(const std::vector<int64_t>& lengths, int64_t steps) {
  const auto batch = static_cast<int64_t>(lengths.size());
  Tensor index({steps, batch}, DType::int64);
  auto* at = index.mutable_data<int64_t>();
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      *at++ = (t < length ? length - 1 - t : t) * batch + b;
    }
  }
  return index;
}

// x [B, T, N] turned.
Variable turned(const Variable& x, const Tensor& index) {
  const Variable rows = reshape(transpose(x, 0, 1), {x.size(0) * x.size(1), x.size(2)});
  return transpose(take_rows(rows, index), 0, 1);
}

// Where the backward layer forgets, in its own steps: step s reads length - 1 - s, and one step of the text later,
// at length - s, another text begins.
Tensor turned_reset(const Tensor& reset, const std::vector<int64_t>& lengths) {
  Tensor turned = zeros(reset.shape(), DType::boolean);
  const int64_t steps = reset.size(1);
  const Tensor given = reset.contiguous();
  const bool* from = given.data<bool>();
  bool* to = turned.mutable_data<bool>();
  for (const int64_t length : lengths) {
    for (int64_t s = 1; s < length; ++s) to[s] = from[length - s];
    from += steps;
    to += steps;
  }
  return turned;
}

// What one of the layers is told, except its masks.
SequenceOptions own_options(const SequenceOptions& options, const std::string& name, uint64_t number) {
  SequenceOptions own = options;
  own.dropout_key = derived_key(options.dropout_key, number);
  own.path = (options.path.empty() ? "" : options.path + ".") + name;
  return own;
}

}  // namespace

Bidirectional::Bidirectional(std::unique_ptr<SequenceLayer> forward, std::unique_ptr<SequenceLayer> backward)
    : forward_(std::move(forward)), backward_(std::move(backward)) {
  check<ValueError>(forward_ && backward_, "Bidirectional", "needs two layers: got {}",
                    forward_ ? "no backward one" : "no forward one");
  check<ShapeError>(forward_->input_size() == backward_->input_size(), "Bidirectional",
                    "both layers must have one input size: got {} and {}", forward_->input_size(),
                    backward_->input_size());
  check<ValueError>(forward_->dtype() == backward_->dtype(), "Bidirectional",
                    "both layers must have one dtype: got {} and {}", to_string(forward_->dtype()),
                    to_string(backward_->dtype()));
  add_child("forward", *forward_);
  add_child("backward", *backward_);
}

State Bidirectional::initial_state(int64_t batch) const {
  State state;
  state.set_part("forward", forward_->initial_state(batch));
  state.set_part("backward", backward_->initial_state(batch));
  return state;
}

SequenceResult Bidirectional::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  const State first = state.part("forward"), second = state.part("backward");
  check_sequence("Bidirectional.forward", *forward_, x, first, options);
  check_sequence("Bidirectional.backward", *backward_, x, second, options);

  const std::vector<int64_t> lengths = row_lengths(options.lengths, x.size(0), x.size(1));
  const Tensor index = turning_index(lengths, x.size(1));
  SequenceOptions backwards = own_options(options, "backward", 1);
  if (options.reset.defined()) backwards.reset = turned_reset(options.reset, lengths);

  const SequenceResult ahead = forward_->forward(x, first, own_options(options, "forward", 0));
  const SequenceResult back = backward_->forward(turned(x, index), second, backwards);
  const std::vector<Variable> halves{ahead.output, turned(back.output, index)};
  SequenceResult result{concatenate(halves, 2), {}};
  result.state.set_part("forward", ahead.state);
  result.state.set_part("backward", back.state);
  return result;
}

}  // namespace carousel
