#include <carousel/nn/rnn.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/record.h>
#include <carousel/nn/init.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/kernels/elman.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: the parts this layer is put together from

// What the forward and the backward kernel are told besides the numbers.
struct Setting {
  kernels::Nonlinearity nonlinearity;
  Breaks breaks;

  // Steps first .. first + steps - 1 of the sequence h [T, B, H].
  kernels::ElmanSequence sequence(const Tensor& h, int64_t first, int64_t steps) const {
    return {.steps = steps,
            .batch = h.size(1),
            .hidden = h.size(2),
            .nonlinearity = nonlinearity,
            .reset = breaks.reset_from(first),
            .lengths = breaks.lengths_or_null(),
            .first_step = first};
  }
};

template <class T>
const T* data_or_null(const Tensor& x, int64_t offset = 0) {
  return x.defined() ? x.data<T>() + offset : nullptr;
}

struct Outputs {
  Tensor h;     // [T, B, H]
  Tensor last;  // [B, H]
};

// h_t = f(before_t + W_hh h_{t-1}), in the memory of `before` [T, B, H].
template <class T>
Outputs run_forward(const Setting& setting, const Tensor& weight_hh, const Tensor& h0, Tensor before) {
  Outputs out{.h = std::move(before), .last = Tensor(h0.shape(), h0.dtype())};
  const int64_t hidden = out.h.size(2);
  const kernels::PackedMatrix<T> transposed(hidden, hidden, weight_hh.data<T>(), 1, hidden);
  kernels::elman_forward(setting.sequence(out.h, 0, out.h.size(0)), transposed, h0.data<T>(), out.h.mutable_data<T>(),
                         out.last.mutable_data<T>());
  return out;
}

struct Visit {
  BackwardVisitor visitor;
  std::string layer;
};

struct InnerGradients {
  Tensor dz;   // [T, B, H], of what f is applied to
  Tensor dh0;  // [B, H]
};

// The loop back in time: in one go, or when somebody looks, a block of steps after the other.
template <class T>
InnerGradients run_backward(const Setting& setting, const Tensor& weight_hh, const Tensor& h, const Tensor& dy,
                            const Tensor& dlast, const Visit& visit) {
  const int64_t steps = h.size(0), batch = h.size(1), hidden = h.size(2);
  const int64_t block = visit.visitor ? visited_steps : steps;
  const kernels::PackedMatrix<T> weight(hidden, hidden, weight_hh.data<T>(), hidden, 1);
  InnerGradients out{.dz = Tensor(h.shape(), h.dtype()), .dh0 = dlast};
  for (int64_t first = (steps - 1) / block * block; first >= 0; first -= block) {
    const int64_t count = std::min(block, steps - first), offset = first * batch * hidden;
    Tensor dh = visit.visitor ? Tensor({count, batch, hidden}, h.dtype()) : Tensor();
    Tensor before({batch, hidden}, h.dtype());
    kernels::elman_backward(setting.sequence(h, first, count), weight, h.data<T>() + offset,
                            data_or_null<T>(dy, offset), data_or_null<T>(out.dh0),
                            dh.defined() ? dh.mutable_data<T>() : nullptr, out.dz.mutable_data<T>() + offset,
                            before.mutable_data<T>());
    if (visit.visitor) {
      const Tensor saved = h.slice(0, {.start = first, .stop = first + count});
      visit.visitor({.layer = visit.layer, .first_step = first, .saved = {{"h", saved}}, .gradient = {{"h", dh}}});
    }
    out.dh0 = before;
  }
  return out;
}

// What forward leaves for backward. Sequences are time-major.
struct Kept {
  kernels::Nonlinearity nonlinearity;
  SavedBreaks breaks;
  Saved inputs;  // [T, B, D]
  Saved h0, h;   // [B, H], [T, B, H]
  Saved w_ih, w_hh;
  Visit visit;
  bool wants_dx;
};

// The gradients of x, h0, W_ih, W_hh and the two biases, from those of the outputs and of the last state.
Gradients backward(const Kept& kept, std::span<const Tensor> dys) {
  const Setting setting{kept.nonlinearity, kept.breaks.get()};
  const Tensor &h = kept.h.get(), &w_hh = kept.w_hh.get();
  const Tensor dy = time_major(dys[0]), dlast = dys[1].defined() ? dys[1].contiguous() : dys[1];
  const auto run = h.dtype() == DType::float32 ? run_backward<float> : run_backward<double>;
  const InnerGradients inner = run(setting, w_hh, h, dy, dlast, kept.visit);
  const Tensor dbias = bias_gradient(inner.dz);
  return {kept.wants_dx ? input_gradient(inner.dz, kept.w_ih.get()) : Tensor(),
          inner.dh0,
          input_weight_gradient(inner.dz, kept.inputs.get()),
          recurrent_weight_gradient(inner.dz, kept.h0.get(), h, setting.breaks),
          dbias,
          dbias};
}

}  // namespace

Fields fields(RnnConfig& config) {
  return {{.name = "nonlinearity",
           .target = &config.nonlinearity,
           .help = "what the state passes through at each step",
           .choices = {"tanh", "relu"}}};
}

Rnn::Rnn(int64_t input_size, int64_t hidden_size, const RnnConfig& config, Rng& rng, DType dtype) : config_(config) {
  check<ValueError>(input_size > 0 && hidden_size > 0, "Rnn", "sizes must be positive: got {} and {}", input_size,
                    hidden_size);
  check_fields("Rnn", fields(config_));
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  weight_ih_ = add_parameter("weight_ih", init::uniform({hidden_size, input_size}, bound, rng, dtype), Decay::yes);
  weight_hh_ = add_parameter("weight_hh", init::uniform({hidden_size, hidden_size}, bound, rng, dtype), Decay::yes);
  bias_ih_ = add_parameter("bias_ih", init::uniform({hidden_size}, bound, rng, dtype), Decay::no);
  bias_hh_ = add_parameter("bias_hh", init::uniform({hidden_size}, bound, rng, dtype), Decay::no);
}

int64_t Rnn::input_size() const { return weight_ih_.size(1); }
int64_t Rnn::output_size() const { return weight_ih_.size(0); }
DType Rnn::dtype() const { return weight_ih_.dtype(); }

std::vector<StateShape> Rnn::state_shapes(int64_t batch) const { return {{"h", {batch, output_size()}, dtype()}}; }

Variable Rnn::activate(const Variable& z) const { return config_.nonlinearity == "tanh" ? tanh(z) : relu(z); }

StepResult Rnn::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Rnn", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  const Variable h = activate(linear(x_t, weight_ih_, bias_ih_) + linear(before["h"], weight_hh_, bias_hh_));
  return {.output = h, .state = {{"h", h}}};
}

SequenceResult Rnn::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("Rnn", *this, x, state, options);
  const Variable& start = state["h"];
  const std::vector<Variable> parents{x, start, weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  // Laying W_hh out for the kernel costs more than one step; no steps need none.
  if (x.size(1) == 0 || (x.size(1) == 1 && !needs_grad(parents))) return unroll(x, state, options);

  const Setting setting{
      .nonlinearity = config_.nonlinearity == "tanh" ? kernels::Nonlinearity::tanh : kernels::Nonlinearity::relu,
      .breaks = Breaks::of(options)};
  const Tensor inputs = setting.breaks.without_padding(time_major(x.value()));
  const Tensor h0 = start.value().contiguous(), &w_hh = weight_hh_.value();
  const Tensor before = project(inputs, weight_ih_.value(), bias_ih_.value(), bias_hh_.value());
  const auto run = dtype() == DType::float32 ? run_forward<float> : run_forward<double>;
  const Outputs out = run(setting, w_hh, h0, before);

  const Kept kept{.nonlinearity = setting.nonlinearity,
                  .breaks = SavedBreaks(setting.breaks),
                  .inputs = Saved(inputs),
                  .h0 = Saved(h0),
                  .h = Saved(out.h),
                  .w_ih = Saved(weight_ih_.value()),
                  .w_hh = Saved(w_hh),
                  .visit = {options.visitor, options.path},
                  .wants_dx = x.requires_grad()};
  const Variables results = record(Op::rnn, {out.h.transpose(0, 1), out.last}, parents,
                                   [kept](std::span<const Tensor> dys) { return backward(kept, dys); });
  return {results[0], {{"h", results[1]}}};
}

}  // namespace carousel
