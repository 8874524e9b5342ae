#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/stack.h>

#include <gtest/gtest.h>

namespace carousel::test {
namespace {

// "layers.0.weight_ih" as PyTorch calls it: "weight_ih_l0".
std::string torch_name(const std::string& path) {
  const size_t dot = path.find_last_of('.');
  return path.substr(dot + 1) + "_l" + path.substr(path.find('.') + 1, 1);
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
  set_parameters(stack, golden, torch_name);
  const Variable x = leaf(golden.at("x"), c.dtype);
  State start;
  for (const StateShape& shape : stack.state_shapes(3)) {
    const StateEntry entry(shape.name);
    start.set(shape.name, leaf(golden.at(entry.name + "0").select(0, entry.layer), c.dtype));
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
  expect_gradients(stack, golden, torch_name);
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

}  // namespace
}  // namespace carousel::test
