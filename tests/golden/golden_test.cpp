#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/character_model.h>
#include <carousel/nn/rnn.h>
#include <carousel/nn/stack.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>
#include <carousel/tensor/elementwise.h>

#include <gtest/gtest.h>

namespace carousel::test {
namespace {

using Golden = std::map<std::string, Tensor>;

// The bars of the comparison with PyTorch: both programs round differently, and nothing else.
double tolerance(DType dtype) { return dtype == DType::float32 ? 1e-5 : 1e-9; }

// "layers.0.weight_ih" as PyTorch calls it: "weight_ih_l0".
std::string torch_name(const std::string& path) {
  const size_t dot = path.find_last_of('.');
  return path.substr(dot + 1) + "_l" + path.substr(path.find('.') + 1, 1);
}

void expect_near(const Tensor& ours, const Tensor& golden, const std::string& name) {
  ASSERT_EQ(ours.shape(), golden.shape()) << name;
  const double worst = ours.numel() ? max(abs(ours.to(DType::float64) - golden)).item() : 0;
  EXPECT_LE(worst, tolerance(ours.dtype())) << name;
}

struct Case {
  const char* nonlinearity;
  DType dtype;
  bool fused;
};

class GoldenRnn : public testing::TestWithParam<Case> {};

TEST_P(GoldenRnn, ForwardAndEveryGradientAreThoseOfPyTorch) {
  const auto [nonlinearity, dtype, fused] = GetParam();
  const Golden golden = read_golden(std::string("rnn_") + nonlinearity + ".json");
  Rng rng(0);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  layers.push_back(std::make_unique<Rnn>(2, 3, RnnConfig{nonlinearity}, rng, dtype));
  layers.push_back(std::make_unique<Rnn>(3, 3, RnnConfig{nonlinearity}, rng, dtype));
  const Stack stack(std::move(layers), 0);
  for (const NamedParameter& parameter : stack.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(golden.at(torch_name(parameter.name)));
  }
  const Variable x = Variable::parameter(golden.at("x").to(dtype).clone());
  std::vector<Variable> h0;
  State state;
  for (int64_t layer = 0; layer < 2; ++layer) {
    h0.push_back(Variable::parameter(golden.at("h0").select(0, layer).to(dtype).clone()));
    state.set(std::to_string(layer) + ".h", h0.back());
  }

  const SequenceResult result = fused ? stack.forward(x, state) : stack.unroll(x, state);
  Variable loss = sum(result.output * golden.at("dy").to(dtype));
  expect_near(result.output.value(), golden.at("y"), "y");
  for (int64_t layer = 0; layer < 2; ++layer) {
    const Variable& h = result.state[std::to_string(layer) + ".h"];
    expect_near(h.value(), golden.at("h").select(0, layer), "h");
    loss = loss + sum(h * golden.at("dh").select(0, layer).to(dtype));
  }
  loss.backward();
  expect_near(x.grad(), golden.at("grad.x"), "grad.x");
  for (int64_t layer = 0; layer < 2; ++layer) {
    expect_near(h0[size_t(layer)].grad(), golden.at("grad.h0").select(0, layer), "grad.h0");
  }
  for (const NamedParameter& parameter : stack.parameters()) {
    expect_near(parameter.variable.grad(), golden.at("grad." + torch_name(parameter.name)), parameter.name);
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.nonlinearity) + "_" + std::string(to_string(info.param.dtype)) +
         (info.param.fused ? "_fused" : "_unrolled");
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenRnn,
                         testing::Values(Case{"tanh", DType::float32, true}, Case{"tanh", DType::float64, true},
                                         Case{"relu", DType::float32, true}, Case{"relu", DType::float64, true},
                                         Case{"tanh", DType::float64, false}, Case{"relu", DType::float64, false}),
                         case_name);

class GoldenTraining : public testing::TestWithParam<DType> {};

TEST_P(GoldenTraining, TenAdamWLossesAreThoseOfPyTorch) {
  const DType dtype = GetParam();
  const Golden golden = read_golden("character_model.json");
  const std::map<std::string, std::string> torch_names = {{"embedding.weight", "embed.weight"},
                                                          {"stack.layers.0.weight_ih", "core.weight_ih_l0"},
                                                          {"stack.layers.0.weight_hh", "core.weight_hh_l0"},
                                                          {"stack.layers.0.bias_ih", "core.bias_ih_l0"},
                                                          {"stack.layers.0.bias_hh", "core.bias_hh_l0"},
                                                          {"head.weight", "head.weight"},
                                                          {"head.bias", "head.bias"}};
  Rng rng(0);
  const CharacterModelConfig config{.vocabulary_size = 5, .embedding_size = 3, .hidden_size = 4};
  CharacterModel model(config, layer_kind("rnn").default_config(), rng, dtype);
  for (const NamedParameter& parameter : model.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(golden.at(torch_names.at(parameter.name)));
  }
  AdamW optimizer(model.parameters(), {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1});
  const Tensor tokens = golden.at("tokens").to(DType::int64);
  State state = model.initial_state(2);
  for (int64_t step = 0; step < 10; ++step) {
    const Tensor inputs = tokens.slice(1, {6 * step, 6 * step + 6});
    const Tensor targets = tokens.slice(1, {6 * step + 1, 6 * step + 7});
    const LossResult result = model.loss(inputs, targets, state);
    optimizer.zero_grad();
    result.loss.backward();
    const double norm = clip_grad_norm(model.parameters(), 0.5);
    optimizer.step(0.05);
    state = result.state.detach();
    expect_near(result.loss.value(), golden.at("losses").select(0, step), "loss " + std::to_string(step));
    EXPECT_NEAR(norm, golden.at("norms").select(0, step).item(), tolerance(dtype)) << "step " << step;
  }
  for (const NamedParameter& parameter : model.parameters()) {
    expect_near(parameter.variable.value(), golden.at("final." + torch_names.at(parameter.name)), parameter.name);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenTraining, testing::Values(DType::float32, DType::float64),
                         [](const testing::TestParamInfo<DType>& dtype) {
                           return std::string(to_string(dtype.param));
                         });

}  // namespace
}  // namespace carousel::test
