#include <carousel/nn/rnn.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/record.h>
#include <carousel/nn/init.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/elman.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

// Steps that a visitor is shown at once, so that looking at a long sequence takes little memory.
constexpr int64_t visited_steps = 32;

Tensor time_major(const Tensor& x) { return x.transpose(0, 1).contiguous(); }

// [T, B, ..] as the matrix [T B, ..].
Tensor all_rows(const Tensor& sequence) { return sequence.reshape({sequence.size(0) * sequence.size(1), sequence.size(2)}); }

// What the forward and the backward kernel are told besides the numbers. Inside, sequences are time-major.
struct Setting {
  kernels::Nonlinearity nonlinearity;
  Tensor reset;    // [T, B] or undefined
  Tensor lengths;  // [B] or undefined

  // Steps first .. first + steps - 1 of the sequence h [T, B, H].
  kernels::ElmanSequence sequence(const Tensor& h, int64_t first, int64_t steps) const {
    return {.steps = steps,
            .batch = h.size(1),
            .hidden = h.size(2),
            .nonlinearity = nonlinearity,
            .reset = reset.defined() ? reset.data<bool>() + first * h.size(1) : nullptr,
            .lengths = lengths.defined() ? lengths.data<int64_t>() : nullptr,
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

// dW_hh = sum over steps and rows of dz_t h_{t-1}^T, where the state was not reset in between.
Tensor recurrent_weight_gradient(const Tensor& dz, const Tensor& h, const Tensor& h0, const Tensor& reset) {
  const Tensor live = reset.defined() ? where(reset.unsqueeze(2), zeros({}, dz.dtype()), dz) : dz;
  Tensor gradient = matmul(live.select(0, 0).transpose(0, 1), h0);
  if (h.size(0) > 1) {
    const Tensor later = all_rows(live.slice(0, {.start = 1})), earlier = all_rows(h.slice(0, {.stop = -1}));
    add_(gradient, matmul(later.transpose(0, 1), earlier));
  }
  return gradient;
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

State Rnn::initial_state(int64_t batch) const { return {{"h", zeros({batch, output_size()}, dtype())}}; }

Variable Rnn::activate(const Variable& z) const { return config_.nonlinearity == "tanh" ? tanh(z) : relu(z); }

StepResult Rnn::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Rnn", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  const Variable h = activate(linear(x_t, weight_ih_, bias_ih_) + linear(before["h"], weight_hh_, bias_hh_));
  return {.output = h, .state = {{"h", h}}};
}

SequenceResult Rnn::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("Rnn", *this, x, state, options);
  const int64_t batch = x.size(0), steps = x.size(1), hidden = output_size();
  if (steps == 0) return {zeros({batch, 0, hidden}, dtype()), state};

  const Setting setting{
      .nonlinearity = config_.nonlinearity == "tanh" ? kernels::Nonlinearity::tanh : kernels::Nonlinearity::relu,
      .reset = options.reset.defined() ? time_major(options.reset) : Tensor(),
      .lengths = options.lengths.defined() ? options.lengths.contiguous() : Tensor()};
  const Variable& start = state["h"];
  const Tensor inputs = time_major(x.value()), h0 = start.value().contiguous();
  Tensor before = matmul(all_rows(inputs), weight_ih_.value().transpose(0, 1));
  add_(before, bias_ih_.value() + bias_hh_.value());
  before = before.reshape({steps, batch, hidden});
  const bool single = dtype() == DType::float32;
  const Outputs out = (single ? run_forward<float> : run_forward<double>)(setting, weight_hh_.value(), h0, before);

  const std::vector<Variable> parents{x, start, weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  const Variables results = record(
      Op::rnn, {out.h.transpose(0, 1), out.last}, parents,
      [setting, visit = Visit{options.visitor, options.path}, inputs = Saved(inputs), h0 = Saved(h0),
       h = Saved(out.h), w_ih = Saved(weight_ih_.value()), w_hh = Saved(weight_hh_.value()),
       single,
       wants_dx = x.requires_grad()](std::span<const Tensor> dys) -> Gradients {
        const Tensor dy = dys[0].defined() ? time_major(dys[0]) : Tensor();
        const Tensor dlast = dys[1].defined() ? dys[1].contiguous() : Tensor();
        const auto [dz, dh0] =
            (single ? run_backward<float> : run_backward<double>)(setting, w_hh.get(), h.get(), dy, dlast, visit);
        const Tensor rows = all_rows(dz);
        Tensor dx;
        if (wants_dx) {
          const Shape shape{dz.size(0), dz.size(1), w_ih.get().size(1)};
          dx = matmul(rows, w_ih.get()).reshape(shape).transpose(0, 1);
        }
        const Tensor dw_ih = matmul(rows.transpose(0, 1), all_rows(inputs.get()));
        const Tensor dw_hh = recurrent_weight_gradient(dz, h.get(), h0.get(), setting.reset);
        const Tensor dbias = sum(rows, {0});  // the two biases are only ever added
        return {dx, dh0, dw_ih, dw_hh, dbias, dbias};
      });
  return {results[0], {{"h", results[1]}}};
}

}  // namespace carousel
