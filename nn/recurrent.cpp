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

// `x` [.., B, N] with zeros in the rows where `mask` [.., B] is true.
Tensor zero_where(const Tensor& mask, const Tensor& x) { return where(mask.unsqueeze(-1), zeros({}, x.dtype()), x); }

// Whether each row has ended at steps first .. first + steps - 1: [steps, B].
Tensor ended(const Tensor& lengths, int64_t first, int64_t steps) {
  const Tensor step = arange(steps) + static_cast<double>(first);
  return less_equal(lengths, step.unsqueeze(1));
}

}  // namespace

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
  if (reset.defined()) seen = zero_where(reset.slice(0, {.start = first, .stop = first + steps}), seen);
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

std::vector<Block> Visit::blocks(int64_t steps) const {
  const int64_t size = visitor ? visited_steps : std::max<int64_t>(1, steps);
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
  for (auto& [name, sequence] : saved) {
    sequence = sequence.slice(0, {.start = block.first, .stop = block.first + block.steps});
  }
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

Tensor project(const Kept& kept, const Tensor& bias) {
  const Tensor &inputs = kept.inputs.get(), &tokens = kept.tokens.get(), &weight = kept.weight_ih.get();
  const Tensor z = linear(all_rows(inputs), weight, bias);
  return tokens.defined() ? take_rows(z, tokens) : z.reshape({inputs.size(0), inputs.size(1), weight.size(0)});
}

InputGradients input_gradients(const Kept& kept, const Tensor& dz) {
  const Tensor &inputs = kept.inputs.get(), &tokens = kept.tokens.get();
  const Tensor rows = tokens.defined() ? scatter_rows(dz, tokens, inputs.size(0)) : all_rows(dz);
  InputGradients all{.source = {}, .weight_ih = weight_gradient(rows, inputs), .bias = bias_gradient(rows)};
  if (!kept.wants_dx) return all;
  all.source = matmul(rows, kept.weight_ih.get());
  if (!tokens.defined()) all.source = all.source.reshape(inputs.shape()).transpose(0, 1);
  return all;
}

Tensor weight_gradient(const Tensor& dz, const Tensor& inputs) {
  return matmul(all_rows(dz).transpose(0, 1), all_rows(inputs));
}

Tensor bias_gradient(const Tensor& dz) { return sum(all_rows(dz), {0}); }

Tensor recurrent_weight_gradient(const Tensor& dz, const Kept& kept) {
  const Breaks breaks = kept.breaks.get();
  const Tensor& h = kept.h.get();
  const Tensor first = breaks.seen(kept.h0.get().unsqueeze(0), 0);
  Tensor gradient = matmul(dz.select(0, 0).transpose(0, 1), first.select(0, 0));
  if (h.size(0) > 1) {
    const Tensor earlier = breaks.seen(h.slice(0, {.stop = -1}), 1);
    add_(gradient, matmul(all_rows(dz.slice(0, {.start = 1})).transpose(0, 1), all_rows(earlier)));
  }
  return gradient;
}

Gradients gradients(const Kept& kept, const Tensor& dz, const std::vector<Tensor>& dstart) {
  const InputGradients input = input_gradients(kept, dz);
  Gradients all{input.source};
  all.insert(all.end(), dstart.begin(), dstart.end());
  for (const Tensor& each : {input.weight_ih, recurrent_weight_gradient(dz, kept), input.bias, input.bias}) {
    all.push_back(each);
  }
  return all;
}

}  // namespace carousel::recurrent
