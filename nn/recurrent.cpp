#include <carousel/nn/recurrent.h>

#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>
#include <carousel/tensor/kernels/recurrence.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>

namespace carousel::recurrent {
namespace {

constexpr int64_t rows_at_once = 1024;  // of the matrices that backward multiplies: steps times rows of the batch

// `x` [.., B, N] with zeros in the rows where `mask` [.., B] is true.
Tensor zero_where(const Tensor& mask, const Tensor& x) { return where(mask.unsqueeze(-1), zeros({}, x.dtype()), x); }

// Whether each row has ended at steps first .. first + steps - 1: [steps, B].
Tensor ended(const Tensor& lengths, int64_t first, int64_t steps) {
  const Tensor step = arange(steps) + static_cast<double>(first);
  return less_equal(lengths, step.unsqueeze(1));
}

}  // namespace

Tensor steps_of(const Tensor& sequence, const Block& block) {
  return sequence.slice(0, {.start = block.first, .stop = block.first + block.steps});
}

Tensor time_major(const Tensor& x) { return x.defined() ? x.transpose(0, 1).contiguous() : x; }

Tensor without_gaps(const Tensor& x) { return x.defined() ? x.contiguous() : x; }

Tensor all_rows(const Tensor& sequence) {
  if (sequence.rank() == 2) return sequence;
  return sequence.reshape({sequence.size(0) * sequence.size(1), sequence.size(2)});
}

Breaks Breaks::of(const SequenceOptions& options) {
  return {.reset = time_major(options.reset), .lengths = without_gaps(options.lengths)};
}

kernels::SequenceShape Breaks::shape(const Tensor& sequence, const Block& block) const {
  return {.steps = block.steps,
          .batch = sequence.size(1),
          .reset = data_or_null<bool>(reset, block.first),
          .lengths = data_or_null<int64_t>(lengths),
          .first_step = block.first};
}

kernels::Recurrence Breaks::recurrence(const Tensor& h, const Block& block) const {
  return {shape(h, block), h.size(2)};
}

Tensor Breaks::without_padding(const Tensor& inputs) const {
  return lengths.defined() ? zero_where(ended(lengths, 0, inputs.size(0)), inputs) : inputs;
}

Tensor Breaks::seen(const Tensor& states, int64_t first) const {
  const int64_t steps = states.size(0);
  Tensor seen = states;
  if (reset.defined()) seen = zero_where(steps_of(reset, {first, steps}), seen);
  if (lengths.defined()) seen = zero_where(ended(lengths, first, steps), seen);
  return seen;
}

NamedTensors gates_by_name(const Tensor& gates, const std::vector<std::string>& names) {
  const int64_t hidden = gates.size(2) / static_cast<int64_t>(names.size());
  NamedTensors all;
  for (int64_t first = 0; const std::string& name : names) {
    all.emplace_back(name, gates.slice(2, {.start = first, .stop = first + hidden}));
    first += hidden;
  }
  return all;
}

std::vector<Block> Visit::blocks(int64_t steps, int64_t at_once) const {
  const int64_t size = visitor ? visited_steps : at_once;
  std::vector<Block> blocks;
  for (int64_t end = steps; end > 0;) {
    const int64_t first = (end - 1) / size * size;
    blocks.push_back({.first = first, .steps = end - first});
    end = first;
  }
  return blocks;
}

Tensor Visit::gradient_like(const Tensor& states, const Block& block) const {
  return visitor ? Tensor({block.steps, states.size(1), states.size(2)}, states.dtype()) : Tensor();
}

void Visit::show(const Block& block, NamedTensors saved, NamedTensors gradient) const {
  if (!visitor) return;
  for (auto& [name, sequence] : saved) sequence = steps_of(sequence, block);
  visitor({.layer = layer, .first_step = block.first, .saved = std::move(saved), .gradient = std::move(gradient)});
}

Kept::Kept(const Input& x, const Variable& start, const SequenceOptions& options, const Variable& w_ih,
           const Variable& w_hh)
    : breaks(Breaks::of(options)),
      inputs(x.tokens.defined() ? x.source.value().contiguous()
                                : breaks.get().without_padding(time_major(x.source.value()))),
      tokens(time_major(x.tokens)),
      h0(start.value().contiguous()),
      weight_ih(w_ih.value()),
      weight_hh(w_hh.value()),
      visit{options.visitor, options.path},
      wants_dx(x.source.requires_grad()) {}

std::vector<Block> Kept::blocks() const {
  const int64_t steps = h.get().size(0), batch = h.get().size(1);
  return visit.blocks(steps, 1 + (rows_at_once - 1) / std::max<int64_t>(1, batch));
}

Tensor project(const Kept& kept, const Tensor& bias) {
  const Tensor &inputs = kept.inputs.get(), &tokens = kept.tokens.get(), &weight = kept.weight_ih.get();
  const Tensor z = linear(all_rows(inputs), weight, bias);
  return tokens.defined() ? take_rows(z, tokens) : z.reshape({inputs.size(0), inputs.size(1), weight.size(0)});
}

void add_weight_gradient(Tensor sum, const Tensor& dz, const Tensor& inputs) {
  add_matmul_(sum, all_rows(dz).transpose(0, 1), all_rows(inputs));
}

Tensor bias_gradient(const Tensor& dz) { return sum(all_rows(dz), {0}); }

InputGradients::InputGradients(const Kept& kept) : kept_(kept) {
  const Tensor &inputs = kept.inputs.get(), &weight = kept.weight_ih.get();
  const int64_t width = weight.size(0);
  sums_ = {.source = kept.wants_dx ? zeros(inputs.shape(), inputs.dtype()) : Tensor(),
           .weight_ih = zeros(weight.shape(), weight.dtype()),
           .bias = zeros({width}, weight.dtype())};
  if (kept.tokens.get().defined()) rows_ = zeros({inputs.size(0), width}, inputs.dtype());
}

void InputGradients::multiply(const Tensor& dz, const Tensor& inputs, const Tensor& dinputs) {
  add_weight_gradient(sums_.weight_ih, dz, inputs);
  add_(sums_.bias, bias_gradient(dz));
  if (!dinputs.defined()) return;
  Tensor rows = all_rows(dinputs);
  add_matmul_(rows, all_rows(dz), kept_.weight_ih.get());
}

void InputGradients::add(const Block& block, const Tensor& dz) {
  if (rows_.defined()) {
    add_rows_(rows_, steps_of(kept_.tokens.get(), block), dz);
  } else {
    multiply(dz, steps_of(kept_.inputs.get(), block), kept_.wants_dx ? steps_of(sums_.source, block) : Tensor());
  }
}

InputGradients::Sums InputGradients::sums() {
  if (rows_.defined()) {
    multiply(rows_, kept_.inputs.get(), sums_.source);
  } else if (kept_.wants_dx) {
    sums_.source = sums_.source.transpose(0, 1);
  }
  return sums_;
}

void add_recurrent_weight_gradient(const Tensor& sum, const Block& block, const Tensor& dz, const Kept& kept) {
  const Breaks breaks = kept.breaks.get();
  Block rest = block;
  if (block.first == 0) {
    add_weight_gradient(sum, dz.slice(0, {.stop = 1}), breaks.seen(kept.h0.get().unsqueeze(0), 0));
    rest = {1, block.steps - 1};
  }
  if (rest.steps == 0) return;
  const Tensor before = breaks.seen(steps_of(kept.h.get(), {rest.first - 1, rest.steps}), rest.first);
  add_weight_gradient(sum, dz.slice(0, {.start = rest.first - block.first}), before);
}

LayerGradients::LayerGradients(const Kept& kept)
    : kept_(kept), input_(kept), weight_hh_(zeros_like(kept.weight_hh.get())) {}

void LayerGradients::add(const Block& block, const Tensor& dz) {
  input_.add(block, dz);
  add_recurrent_weight_gradient(weight_hh_, block, dz, kept_);
}

Gradients LayerGradients::all(const std::vector<Tensor>& dstart) {
  const InputGradients::Sums input = input_.sums();
  Gradients all{input.source};
  all.insert(all.end(), dstart.begin(), dstart.end());
  for (const Tensor& each : {input.weight_ih, weight_hh_, input.bias, input.bias}) all.push_back(each);
  return all;
}

}  // namespace carousel::recurrent
