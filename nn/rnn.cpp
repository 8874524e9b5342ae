#include <carousel/nn/rnn.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/kernels/elman.h>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: the parts this layer is put together from

struct Outputs {
  Tensor h;     // [T, B, H]
  Tensor last;  // [B, H]
};

// h_t = f(before_t + W_hh h_{t-1}), in the memory of `before` [T, B, H].
template <class T>
Outputs run_forward(kernels::Nonlinearity f, const Kept& kept, Tensor before) {
  const Tensor& h0 = kept.h0.get();
  Outputs out{.h = std::move(before), .last = Tensor(h0.shape(), h0.dtype())};
  const int64_t hidden = h0.size(1);
  const kernels::PackedMatrix<T> transposed(hidden, hidden, kept.weight_hh.get().data<T>(), 1, hidden);
  kernels::elman_forward(kept.breaks.get().recurrence(out.h, {0, out.h.size(0)}), f, transposed, h0.data<T>(),
                         out.h.mutable_data<T>(), out.last.mutable_data<T>());
  return out;
}

// The loop back in time: the gradients of x, h0 and the parameters, from those of the outputs and of the last state.
template <class T>
Gradients run_backward(kernels::Nonlinearity f, const Kept& kept, const Tensor& dy, const Tensor& dlast) {
  const Tensor& h = kept.h.get();
  const Breaks breaks = kept.breaks.get();
  const int64_t hidden = h.size(2);
  const kernels::PackedMatrix<T> weight(hidden, hidden, kept.weight_hh.get().data<T>(), hidden, 1);
  LayerGradients sums(kept);
  Tensor dh0 = dlast;
  for (const Block& block : kept.blocks()) {
    Tensor dz(steps_of(h, block).shape(), h.dtype()), dh = kept.visit.gradient_like(h, block),
                                                      before(kept.h0.get().shape(), h.dtype());
    kernels::elman_backward(breaks.recurrence(h, block), f, weight, data_or_null<T>(h, block.first),
                            data_or_null<T>(dy, block.first), data_or_null<T>(dh0), mutable_or_null<T>(dh),
                            dz.mutable_data<T>(), before.mutable_data<T>());
    kept.visit.show(block, {{"h", h}}, {{"h", dh}});
    sums.add(block, dz);
    dh0 = before;
  }
  return sums.all({dh0});
}

Gradients backward(kernels::Nonlinearity f, const Kept& kept, std::span<const Tensor> dys) {
  const auto run = kept.h.get().dtype() == DType::float32 ? run_backward<float> : run_backward<double>;
  return run(f, kept, time_major(dys[0]), without_gaps(dys[1]));
}

}  // namespace

Fields fields(RnnConfig& config) {
  return {{.name = "nonlinearity",
           .target = &config.nonlinearity,
           .help = "what the state passes through at each step",
           .choices = {"tanh", "relu"}}};
}

Rnn::Rnn(int64_t input_size, int64_t hidden_size, const RnnConfig& config, Rng& rng, DType dtype)
    : RecurrentLayer("Rnn", input_size, hidden_size, 1, Biases::uniform, rng, dtype), config_(config) {
  check_fields("Rnn", fields(config_));
}

Variable Rnn::activate(const Variable& z) const { return config_.nonlinearity == "tanh" ? tanh(z) : relu(z); }

StepResult Rnn::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Rnn", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  const Variable h = activate(linear(x_t, weight_ih_, bias_ih_) + linear(before["h"], weight_hh_, bias_hh_));
  return {.output = h, .state = {{"h", h}}};
}

SequenceResult Rnn::fused(const Input& x, const State& state, const SequenceOptions& options) const {
  const auto f = config_.nonlinearity == "tanh" ? kernels::Nonlinearity::tanh : kernels::Nonlinearity::relu;
  Kept kept(x, state["h"], options, weight_ih_, weight_hh_);
  const Tensor before = project(kept, bias_ih_.value() + bias_hh_.value());
  const auto run = dtype() == DType::float32 ? run_forward<float> : run_forward<double>;
  const Outputs out = run(f, kept, before);
  kept.h = Saved(out.h);
  const Variables parents{x.source, state["h"], weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  const Variables results = record(Op::rnn, {out.h.transpose(0, 1), out.last}, parents,
                                   [f, kept](std::span<const Tensor> dys) { return backward(f, kept, dys); });
  return {results[0], {{"h", results[1]}}};
}

}  // namespace carousel
