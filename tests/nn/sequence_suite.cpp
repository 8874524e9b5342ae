#include "sequence_suite.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/mamba.h>
#include <carousel/nn/self_attention.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <algorithm>

namespace carousel::test {
namespace {

// Weights as large as those of other layers: N(0, 0.02) would leave little of some gradients to compare.
void enlarge(const SequenceLayer& layer, Rng& rng) {
  for (const NamedParameter& parameter : layer.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(rng.normal(value.shape(), 0, 0.6, value.dtype()));
  }
}

// A kind as it is registered, with `config` (JSON) instead of some defaults.
Member registered(const std::string& name, const std::string& kind, const std::string& config = "{}",
                  int64_t input_of_block = 4) {
  return {name, [kind, config, input_of_block](DType dtype, Rng& rng) {
            const LayerKind& found = layer_kind(kind);
            const LayerConfig layer_config = found.default_config();
            fields_from_json(kind, config, layer_config.field_list());
            const int64_t input_size = found.form.residual ? input_of_block : 3;
            // Dropout acts on residual blocks alone, and only in passes that have a key.
            const LayerShape shape{.input_size = input_size, .hidden_size = 4, .dtype = dtype, .dropout = 0.4};
            auto layer = found.make(shape, layer_config, rng);
            if (found.form.residual) enlarge(*layer, rng);
            return layer;
          }};
}

Member attention() {
  return {"attention", [](DType dtype, Rng& rng) {
            auto layer = std::make_unique<CausalSelfAttention>(4, CausalSelfAttentionConfig{.heads = 2}, rng, dtype);
            enlarge(*layer, rng);
            return layer;
          }};
}

// The mixer alone, which is no kind: width 4, expand 2.
Member mamba(const std::string& name, const MambaConfig& config) {
  return {name, [config](DType dtype, Rng& rng) { return std::make_unique<Mamba>(4, config, 1, rng, dtype); }};
}

}  // namespace

std::vector<Member> members() {
  std::vector<Member> all;
  for (const std::string& kind : layer_kind_names()) all.push_back(registered(kind, kind));
  all.push_back(registered("rnn_relu", "rnn", R"({"nonlinearity": "relu"})"));
  all.push_back(registered("lstm_1997", "lstm", R"({"forget_gate": false})"));
  all.push_back(registered("lstm_peepholes", "lstm", R"({"peepholes": true})"));
  all.push_back(registered("lstm_layer_norm", "lstm", R"({"layer_norm": true})"));
  all.push_back(registered("lstm_variational", "lstm", R"({"variational_dropout": 0.4})"));
  all.push_back(registered("ssm_projected", "ssm", "{}", 3));
  all.push_back(registered("gpt_projected", "gpt", "{}", 3));
  all.push_back(registered("ssm_no_gate", "ssm", R"({"gate": false})"));
  all.push_back(registered("gru_reset_before", "gru", R"({"reset_after": false})"));
  all.push_back(registered("decay_learned", "decay", R"({"learned": true})"));
  all.push_back(attention());
  all.push_back(mamba("mamba", {.state_size = 3}));
  all.push_back(mamba("mamba_no_gate", {.state_size = 3, .gate = false}));
  all.push_back(mamba("mamba_fixed", {.state_size = 3, .selective = false}));
  return all;
}

std::unique_ptr<SequenceLayer> make_layer(const Member& member, DType dtype) {
  Rng rng(1);
  return member.make(dtype, rng);
}

Tensor random(const Shape& shape, uint64_t seed, DType dtype) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, DType::float64).to(dtype);
}

Tensor some_resets(int64_t batch, int64_t steps) {
  Tensor reset = zeros({batch, steps}, DType::boolean);
  reset.select(0, 0).slice(0, {.start = steps / 2, .stop = steps / 2 + 1}).fill_(1);
  reset.select(0, -1).slice(0, {.stop = 1}).fill_(1);
  return reset;
}

Tensor some_lengths(int64_t batch, int64_t steps) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < batch; ++row) lengths.push_back(std::max<int64_t>(0, steps - row));
  return Tensor::from(lengths, {batch});
}

namespace {

// The shape of a state that has grown by a few steps, along the axes that grow.
Shape grown(Shape initial) {
  std::replace(initial.begin() + 1, initial.end(), int64_t{0}, int64_t{3});
  return initial;
}

}  // namespace

State random_state(const SequenceLayer& layer, int64_t batch) {
  const State zero = layer.initial_state(batch);
  State state = zero;
  uint64_t seed = 100;
  for (const auto& [name, value] : zero.values()) {
    state.set(name, Variable::parameter(random(grown(value.shape()), seed++, value.dtype()) * 0.5));
  }
  for (const auto& [name, value] : zero.counts()) state.set_count(name, ones(grown(value.shape()), DType::int64));
  return state;
}

Variable weigh(const SequenceResult& result) {
  const auto weigh_one = [](const Variable& value, uint64_t seed) {
    return sum(value * Variable(random(value.shape(), seed, value.dtype())));
  };
  Variable total = weigh_one(result.output, 50);
  uint64_t seed = 60;
  for (const auto& [name, value] : result.state.values()) total = total + weigh_one(value, seed++);
  return total;
}

Everything everything_of(const SequenceLayer& layer, const Variable& input, const State& state,
                         const SequenceResult& result) {
  weigh(result).backward();
  Everything all = {{"output", result.output.value()}, {"d input", input.grad()}};
  for (const auto& [name, value] : result.state.values()) {
    all.emplace_back("final " + name, value.value());
    all.emplace_back("d initial " + name, state[name].grad());
  }
  for (const NamedParameter& parameter : layer.parameters()) {
    all.emplace_back("d " + parameter.name, parameter.variable.grad());
  }
  return all;
}

Everything everything(SequenceLayer& layer, const Tensor& input, const SequenceOptions& options, bool fused,
                      const State& state) {
  layer.zero_grad();
  const Variable x = Variable::parameter(input);
  return everything_of(layer, x, state, fused ? layer.forward(x, state, options) : layer.unroll(x, state, options));
}

Everything everything(SequenceLayer& layer, const Tensor& input, const SequenceOptions& options, bool fused) {
  return everything(layer, input, options, fused, random_state(layer, input.size(0)));
}

void expect_close(const Everything& a, const Everything& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].second.defined(), b[i].second.defined()) << a[i].first;
    if (a[i].second.defined()) {
      EXPECT_TRUE(all_close(a[i].second.to(DType::float64), b[i].second.to(DType::float64), tolerance, tolerance))
          << a[i].first;
    }
  }
}

}  // namespace carousel::test
