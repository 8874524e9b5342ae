#include <carousel/nn/gru.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/gru.h>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: the parts the fused forward is put together from
using kernels::GruForm;

struct GruKept {
  Kept common;
  GruForm form;
  Saved gates, q;  // [T, B, 3H], [T, B, H]: set when they are there
};

// A tensor [.., 3H] or [3H, ..] in two parts: that of r and z, and that of n.
Tensor of_gates(const Tensor& x, int64_t axis) { return x.slice(axis, {.stop = x.size(axis) / 3 * 2}); }
Tensor of_candidate(const Tensor& x, int64_t axis) { return x.slice(axis, {.start = x.size(axis) / 3 * 2}); }

struct Outputs {
  Tensor q, h, last;  // [T, B, H], [T, B, H], [B, H]
};

// Turns `gates` [T, B, 3H], the part of the input, into the gates. `bias` is b_hh [3H].
template <class T>
Outputs run_forward(const GruKept& kept, const Tensor& bias, Tensor& gates) {
  const Tensor& h0 = kept.common.h0.get();
  const Shape states{gates.size(0), h0.size(0), h0.size(1)};
  Outputs out{Tensor(states, h0.dtype()), Tensor(states, h0.dtype()), Tensor(h0.shape(), h0.dtype())};
  const auto weights = kernels::GruWeights<T>::transposed(h0.size(1), kept.common.weight_hh.get().data<T>());
  kernels::gru_forward<T>(kept.common.breaks.get().recurrence(out.h, {0, gates.size(0)}), kept.form, weights,
                          kept.form == GruForm::reset_after ? of_candidate(bias, 0).data<T>() : nullptr, h0.data<T>(),
                          {gates.mutable_data<T>(), out.q.mutable_data<T>(), out.h.mutable_data<T>()},
                          out.last.mutable_data<T>());
  return out;
}

// The gradients of W_hh and b_hh, gathered block by block. Those of W_hn and b_hn go through q where the reset gate
// acts after the product.
class RecurrentGradients {
 public:
  explicit RecurrentGradients(const GruKept& kept)
      : kept_(kept),
        after_(kept.form == GruForm::reset_after),
        weight_(zeros_like(kept.common.weight_hh.get())),
        bias_(zeros({weight_.size(0)}, weight_.dtype())) {}

  // dz [steps, B, 3H] before the gates' functions, dq [steps, B, H].
  void add(const Block& block, const Tensor& dz, const Tensor& dq) {
    const Tensor of_n = of_candidate(weight_, 0);
    add_recurrent_weight_gradient(of_gates(weight_, 0), block, of_gates(dz, 2), kept_.common);
    if (after_) {
      add_recurrent_weight_gradient(of_n, block, dq, kept_.common);
      Tensor bias_n = of_candidate(bias_, 0);
      add_(bias_n, bias_gradient(dq));
    } else {
      add_weight_gradient(of_n, of_candidate(dz, 2), steps_of(kept_.q.get(), block));
    }
  }
  const Tensor& weight() const { return weight_; }
  // From the gradient of b_ih, which is the same but for n.
  Tensor bias(const Tensor& input_bias) {
    if (!after_) return input_bias;
    of_gates(bias_, 0).copy_(of_gates(input_bias, 0));
    return bias_;
  }

 private:
  const GruKept& kept_;
  bool after_;
  Tensor weight_, bias_;
};

// The loop back in time: the gradients of x, h0 and the parameters, from those of the outputs and of the last state.
template <class T>
Gradients run_backward(const GruKept& kept, const Tensor& dy, const Tensor& dlast) {
  const Tensor &gates = kept.gates.get(), &q = kept.q.get(), &h = kept.common.h.get(), &h0 = kept.common.h0.get();
  const Breaks breaks = kept.common.breaks.get();
  const auto weights = kernels::GruWeights<T>::straight(h.size(2), kept.common.weight_hh.get().data<T>());
  InputGradients input(kept.common);
  RecurrentGradients recurrent(kept);
  Tensor dh0 = dlast;
  for (const Block& block : kept.common.blocks()) {
    const int64_t first = block.first;
    Tensor dz(steps_of(gates, block).shape(), h.dtype()), dq(steps_of(q, block).shape(), h.dtype()),
        dh = kept.common.visit.gradient_like(h, block), before(h0.shape(), h0.dtype());
    kernels::gru_backward<T>(
        breaks.recurrence(h, block), kept.form, weights, first == 0 ? h0.data<T>() : data_or_null<T>(h, first - 1),
        {data_or_null<T>(gates, first), data_or_null<T>(q, first), data_or_null<T>(h, first)},
        data_or_null<T>(dy, first), data_or_null<T>(dh0),
        {dz.mutable_data<T>(), dq.mutable_data<T>(), mutable_or_null<T>(dh)}, before.mutable_data<T>());
    if (kept.common.visit.visitor) {
      NamedTensors saved = gates_by_name(gates, {"r", "z", "n"});
      saved.emplace_back("h", h);
      kept.common.visit.show(block, saved, {{"h", dh}});
    }
    input.add(block, dz);
    recurrent.add(block, dz, dq);
    dh0 = before;
  }
  const InputGradients::Sums sums = input.sums();
  return {sums.source, dh0, sums.weight_ih, recurrent.weight(), sums.bias, recurrent.bias(sums.bias)};
}

Gradients backward(const GruKept& kept, std::span<const Tensor> dys) {
  const auto run = kept.q.get().dtype() == DType::float32 ? run_backward<float> : run_backward<double>;
  return run(kept, time_major(dys[0]), without_gaps(dys[1]));
}

}  // namespace

Fields fields(GruConfig& config) {
  return {{.name = "reset_after",
           .target = &config.reset_after,
           .help = "reset gate after the recurrent product (PyTorch's form); false: before"}};
}

Gru::Gru(int64_t input_size, int64_t hidden_size, const GruConfig& config, Rng& rng, DType dtype)
    : RecurrentLayer("Gru", input_size, hidden_size, 3, Biases::uniform, rng, dtype), config_(config) {}

StepResult Gru::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Gru", *this, x_t, state, options);
  const Variable h = reset_rows(state, options.reset)["h"];
  const int64_t hidden = output_size();
  const std::vector<int64_t> two_and_one{2 * hidden, hidden}, halves{hidden, hidden};
  const Variables x_side = split(linear(x_t, weight_ih_, bias_ih_), two_and_one, 1);
  const Variables weight = split(weight_hh_, two_and_one, 0), bias = split(bias_hh_, two_and_one, 0);
  const Variables gates = split(sigmoid(x_side[0] + linear(h, weight[0], bias[0])), halves, 1);
  const Variable &r = gates[0], &z = gates[1];
  const Variable recurrent =
      config_.reset_after ? r * linear(h, weight[1], bias[1]) : linear(r * h, weight[1], bias[1]);
  const Variable n = tanh(x_side[1] + recurrent);
  const Variable next = (1.0 - z) * n + z * h;
  return {.output = next, .state = {{"h", next}}};
}

SequenceResult Gru::fused(const Input& x, const State& state, const SequenceOptions& options) const {
  GruKept kept{.common = Kept(x, state["h"], options, weight_ih_, weight_hh_),
               .form = config_.reset_after ? GruForm::reset_after : GruForm::reset_before,
               .gates = {},
               .q = {}};
  Tensor bias = bias_ih_.value() + bias_hh_.value();
  if (config_.reset_after) of_candidate(bias, 0).copy_(of_candidate(bias_ih_.value(), 0));  // b_hn lies behind r
  Tensor gates = project(kept.common, bias);
  const auto run = dtype() == DType::float32 ? run_forward<float> : run_forward<double>;
  const Outputs out = run(kept, bias_hh_.value(), gates);
  kept.common.h = Saved(out.h);
  kept.gates = Saved(gates);
  kept.q = Saved(out.q);
  const Variables parents{x.source, state["h"], weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  const Variables results = record(Op::gru, {out.h.transpose(0, 1), out.last}, parents,
                                   [kept](std::span<const Tensor> dys) { return backward(kept, dys); });
  return {results[0], {{"h", results[1]}}};
}

}  // namespace carousel
