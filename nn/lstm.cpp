#include <carousel/nn/lstm.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/init.h>
#include <carousel/nn/recurrent.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/kernels/lstm.h>

namespace carousel {
namespace {

using namespace recurrent;  // NOLINT: the parts the fused forward is put together from

// x W^T, normalised.
Variable normalized_product(const Variable& x, const Variable& weight, const Variable& gain) {
  const Variable none = zeros(gain.shape(), gain.dtype());
  return layer_norm(linear(x, weight, {}), gain, none);
}

struct States {
  Tensor h, c;

  template <class T>
  kernels::LstmStates<const T> read() const {
    return {data_or_null<T>(h), data_or_null<T>(c)};
  }
  template <class T>
  kernels::LstmStates<T> write() {
    return {mutable_or_null<T>(h), mutable_or_null<T>(c)};
  }
};

States empty_states(const Shape& shape, DType dtype) { return {Tensor(shape, dtype), Tensor(shape, dtype)}; }

struct LstmKept {
  Kept common;
  kernels::LstmForm form;
  Saved c0;        // [B, H]
  Saved gates, c;  // [T, B, G H], [T, B, H]: set when they are there
};

// Turns `gates` [T, B, G H], the part of the input, into the gates. States after every step and after the last.
template <class T>
std::pair<States, States> run_forward(const LstmKept& kept, Tensor& gates) {
  const Tensor &h0 = kept.common.h0.get(), &w = kept.common.weight_hh.get();
  const int64_t steps = gates.size(0), batch = h0.size(0), hidden = h0.size(1);
  const kernels::PackedMatrix<T> transposed(hidden, w.size(0), w.data<T>(), 1, hidden);
  const States start{h0, kept.c0.get()};
  States states = empty_states({steps, batch, hidden}, h0.dtype()), last = empty_states(h0.shape(), h0.dtype());
  kernels::lstm_forward(kept.common.breaks.get().recurrence(states.h, {0, steps}), kept.form, transposed,
                        start.read<T>(), gates.mutable_data<T>(), states.write<T>(), last.write<T>());
  return {states, last};
}

NamedTensors by_name(const LstmKept& kept) {
  const bool standard = kept.form == kernels::LstmForm::standard;
  NamedTensors saved = gates_by_name(kept.gates.get(), standard ? std::vector<std::string>{"i", "f", "g", "o"}
                                                                : std::vector<std::string>{"i", "g", "o"});
  saved.emplace_back("c", kept.c.get());
  saved.emplace_back("h", kept.common.h.get());
  return saved;
}

// The loop back in time: the gradients of x, h0, c0 and the parameters, from those of the outputs and of the last h, c.
template <class T>
Gradients run_backward(const LstmKept& kept, const Tensor& dy, const States& dlast) {
  const Tensor &gates = kept.gates.get(), &c = kept.c.get(), &w = kept.common.weight_hh.get();
  const Breaks breaks = kept.common.breaks.get();
  const Visit& visit = kept.common.visit;
  const kernels::PackedMatrix<T> weight(w.size(0), w.size(1), w.data<T>(), w.size(1), 1);
  LayerGradients sums(kept.common);
  States dstart = dlast;
  for (const Block& block : kept.common.blocks()) {
    const int64_t first = block.first;
    const kernels::LstmMemory<T> memory{.gates = data_or_null<T>(gates, first),
                                        .c0 = first == 0 ? kept.c0.get().data<T>() : data_or_null<T>(c, first - 1),
                                        .c = data_or_null<T>(c, first)};
    Tensor dz(steps_of(gates, block).shape(), gates.dtype());
    States dstates{visit.gradient_like(c, block), visit.gradient_like(c, block)},
        before = empty_states(kept.c0.get().shape(), c.dtype());
    kernels::lstm_backward(breaks.recurrence(c, block), kept.form, weight, memory, data_or_null<T>(dy, first),
                           dstart.read<T>(), dstates.write<T>(), dz.mutable_data<T>(), before.write<T>());
    if (visit.visitor) visit.show(block, by_name(kept), {{"h", dstates.h}, {"c", dstates.c}});
    sums.add(block, dz);
    dstart = before;
  }
  return sums.all({dstart.h, dstart.c});
}

Gradients backward(const LstmKept& kept, std::span<const Tensor> dys) {
  const auto run = kept.c.get().dtype() == DType::float32 ? run_backward<float> : run_backward<double>;
  return run(kept, time_major(dys[0]), {without_gaps(dys[1]), without_gaps(dys[2])});
}

}  // namespace

Fields fields(LstmConfig& config) {
  return {{.name = "forget_bias",
           .target = &config.forget_bias,
           .help = "bias of the forget gate at the beginning",
           .minimum = -100,
           .maximum = 100},
          {.name = "forget_gate", .target = &config.forget_gate, .help = "false: the form of 1997"},
          {.name = "peepholes", .target = &config.peepholes, .help = "gates see the cell"},
          {.name = "layer_norm", .target = &config.layer_norm, .help = "normalise the products and the cell"},
          {.name = "variational_dropout",
           .target = &config.variational_dropout,
           .help = "dropout of the state, one mask for all steps",
           .minimum = 0,
           .maximum = 0.99}};
}

Lstm::Lstm(int64_t input_size, int64_t hidden_size, const LstmConfig& config, Rng& rng, DType dtype)
    : RecurrentLayer("Lstm", input_size, hidden_size, config.forget_gate ? 4 : 3, Biases::zero, rng, dtype),
      config_(config) {
  check_fields("Lstm", fields(config_));
  if (config_.forget_gate && !init::shapes_only()) {
    bias_ih_.value().slice(0, {.start = hidden_size, .stop = 2 * hidden_size}).fill_(config_.forget_bias);
  }
  const int64_t width = gates() * hidden_size;
  if (config_.peepholes) peephole_ = add_parameter("peephole", init::constant({3, hidden_size}, 0, dtype), Decay::no);
  if (config_.layer_norm) {
    gain_ih_ = add_parameter("gain_ih", init::constant({width}, 1, dtype), Decay::no);
    gain_hh_ = add_parameter("gain_hh", init::constant({width}, 1, dtype), Decay::no);
    gain_c_ = add_parameter("gain_c", init::constant({hidden_size}, 1, dtype), Decay::no);
    shift_c_ = add_parameter("shift_c", init::constant({hidden_size}, 0, dtype), Decay::no);
  }
}

std::vector<StateShape> Lstm::state_shapes(int64_t batch) const {
  return {{"h", {batch, output_size()}, dtype()}, {"c", {batch, output_size()}, dtype()}};
}

Variable Lstm::before_gates(const Variable& x_t, const Variable& h) const {
  if (!config_.layer_norm) return linear(x_t, weight_ih_, bias_ih_) + linear(h, weight_hh_, bias_hh_);
  return normalized_product(x_t, weight_ih_, gain_ih_) + normalized_product(h, weight_hh_, gain_hh_) +
         (bias_ih_ + bias_hh_);
}

StepResult Lstm::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("Lstm", *this, x_t, state, options);
  const State before = reset_rows(state, options.reset);
  // One mask for all steps: that of step 0.
  const Variable h = dropout_in_training(*this, before["h"], config_.variational_dropout, options.dropout_key);
  const std::vector<int64_t> widths(static_cast<size_t>(gates()), output_size());
  const Variables z = split(before_gates(x_t, h), widths, 1);
  // What a gate sees of the cell: row 0, 1, 2 of the peepholes for i, f, o.
  const auto peep = [this](const Variable& gate, int64_t row, const Variable& c) {
    return config_.peepholes ? gate + select(peephole_, 0, row) * c : gate;
  };
  const Variable i = sigmoid(peep(z.front(), 0, before["c"]));
  const Variable g = tanh(z[z.size() - 2]);
  const Variable kept = config_.forget_gate ? sigmoid(peep(z[1], 1, before["c"])) * before["c"] : before["c"];
  const Variable c = kept + i * g;
  const Variable o = sigmoid(peep(z.back(), 2, c));
  const Variable y = o * tanh(config_.layer_norm ? layer_norm(c, gain_c_, shift_c_) : c);
  return {.output = y, .state = {{"h", y}, {"c", c}}};
}

bool Lstm::has_kernel(const SequenceOptions& options) const {
  return !config_.peepholes && !config_.layer_norm && !drops(*this, config_.variational_dropout, options.dropout_key);
}

SequenceResult Lstm::fused(const Input& x, const State& state, const SequenceOptions& options) const {
  LstmKept kept{.common = Kept(x, state["h"], options, weight_ih_, weight_hh_),
                .form = config_.forget_gate ? kernels::LstmForm::standard : kernels::LstmForm::without_forget_gate,
                .c0 = Saved(state["c"].value().contiguous()),
                .gates = {},
                .c = {}};
  Tensor gates = project(kept.common, bias_ih_.value() + bias_hh_.value());
  const auto run = dtype() == DType::float32 ? run_forward<float> : run_forward<double>;
  const auto [states, last] = run(kept, gates);
  kept.common.h = Saved(states.h);
  kept.gates = Saved(gates);
  kept.c = Saved(states.c);
  const Variables parents{x.source, state["h"], state["c"], weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  const Variables results = record(Op::lstm, {states.h.transpose(0, 1), last.h, last.c}, parents,
                                   [kept](std::span<const Tensor> dys) { return backward(kept, dys); });
  return {results[0], {{"h", results[1]}, {"c", results[2]}}};
}

}  // namespace carousel
