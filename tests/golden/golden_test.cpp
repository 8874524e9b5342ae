#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/character_model.h>
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
  std::string file;
  std::string kind;
  std::string config;  // as JSON
  DType dtype;
  bool fused;
};

class GoldenLayer : public testing::TestWithParam<Case> {
 protected:
  static Stack make_stack(const Case& c) {
    Rng rng(0);
    const LayerKind& kind = layer_kind(c.kind);
    const LayerConfig config = kind.default_config();
    fields_from_json(c.kind, c.config, config.field_list());
    std::vector<std::unique_ptr<SequenceLayer>> layers;
    layers.push_back(kind.make({2, 3, c.dtype}, config, rng));
    layers.push_back(kind.make({3, 3, c.dtype}, config, rng));
    return Stack(std::move(layers), 0);
  }
};

// "0.h" is layer 0 of the golden tensor "h".
struct StateEntry {
  explicit StateEntry(const std::string& path) : layer(path[0] - '0'), name(path.substr(2)) {}
  int64_t layer;
  std::string name;
};

TEST_P(GoldenLayer, ForwardAndEveryGradientAreThoseOfPyTorch) {
  const Case& c = GetParam();
  const Golden golden = read_golden(c.file);
  const Stack stack = make_stack(c);
  for (const NamedParameter& parameter : stack.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(golden.at(torch_name(parameter.name)));
  }
  const auto leaf = [&c](const Tensor& value) { return Variable::parameter(value.to(c.dtype).clone()); };
  const Variable x = leaf(golden.at("x"));
  State start;
  for (const StateShape& shape : stack.state_shapes(3)) {
    const StateEntry entry(shape.name);
    start.set(shape.name, leaf(golden.at(entry.name + "0").select(0, entry.layer)));
  }

  const SequenceResult result = c.fused ? stack.forward(x, start) : stack.unroll(x, start);
  Variable loss = sum(result.output * golden.at("dy").to(c.dtype));
  expect_near(result.output.value(), golden.at("y"), "y");
  for (const auto& [path, end] : result.state.values()) {
    const StateEntry entry(path);
    expect_near(end.value(), golden.at(entry.name).select(0, entry.layer), path);
    loss = loss + sum(end * golden.at("d" + entry.name).select(0, entry.layer).to(c.dtype));
  }
  loss.backward();
  expect_near(x.grad(), golden.at("grad.x"), "grad.x");
  for (const auto& [path, value] : start.values()) {
    const StateEntry entry(path);
    expect_near(value.grad(), golden.at("grad." + entry.name + "0").select(0, entry.layer), "start of " + path);
  }
  for (const NamedParameter& parameter : stack.parameters()) {
    expect_near(parameter.variable.grad(), golden.at("grad." + torch_name(parameter.name)), parameter.name);
  }
}

std::vector<Case> layer_cases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const bool fused : {true, false}) {
      cases.push_back({"rnn_tanh.json", "rnn", "{}", dtype, fused});
      cases.push_back({"rnn_relu.json", "rnn", R"({"nonlinearity": "relu"})", dtype, fused});
      cases.push_back({"lstm.json", "lstm", "{}", dtype, fused});
      cases.push_back({"gru.json", "gru", "{}", dtype, fused});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return c.file.substr(0, c.file.find('.')) + "_" + std::string(to_string(c.dtype)) + (c.fused ? "" : "_unrolled");
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenLayer, testing::ValuesIn(layer_cases()), case_name);

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
