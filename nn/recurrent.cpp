#include <carousel/nn/recurrent.h>

#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

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

Tensor all_rows(const Tensor& sequence) {
  return sequence.reshape({sequence.size(0) * sequence.size(1), sequence.size(2)});
}

Breaks Breaks::of(const SequenceOptions& options) {
  return {.reset = time_major(options.reset),
          .lengths = options.lengths.defined() ? options.lengths.contiguous() : options.lengths};
}

const bool* Breaks::reset_from(int64_t step) const {
  return reset.defined() ? reset.data<bool>() + step * reset.size(1) : nullptr;
}

const int64_t* Breaks::lengths_or_null() const { return lengths.defined() ? lengths.data<int64_t>() : nullptr; }

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

Tensor project(const Tensor& inputs, const Tensor& weight_ih, const Tensor& bias_ih, const Tensor& bias_hh) {
  Tensor z = matmul(all_rows(inputs), weight_ih.transpose(0, 1));
  add_(z, bias_ih + bias_hh);
  return z.reshape({inputs.size(0), inputs.size(1), weight_ih.size(0)});
}

Tensor input_gradient(const Tensor& dz, const Tensor& weight_ih) {
  const Shape shape{dz.size(0), dz.size(1), weight_ih.size(1)};
  return matmul(all_rows(dz), weight_ih).reshape(shape).transpose(0, 1);
}

Tensor input_weight_gradient(const Tensor& dz, const Tensor& inputs) {
  return matmul(all_rows(dz).transpose(0, 1), all_rows(inputs));
}

Tensor bias_gradient(const Tensor& dz) { return sum(all_rows(dz), {0}); }

Tensor recurrent_weight_gradient(const Tensor& dz, const Tensor& h0, const Tensor& h, const Breaks& breaks) {
  const Tensor first = breaks.seen(h0.unsqueeze(0), 0);
  Tensor gradient = matmul(dz.select(0, 0).transpose(0, 1), first.select(0, 0));
  if (h.size(0) > 1) {
    const Tensor earlier = breaks.seen(h.slice(0, {.stop = -1}), 1);
    add_(gradient, matmul(all_rows(dz.slice(0, {.start = 1})).transpose(0, 1), all_rows(earlier)));
  }
  return gradient;
}

}  // namespace carousel::recurrent
