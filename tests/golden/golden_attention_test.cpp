#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/attention.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/gpt_block.h>
#include <carousel/tensor/compare.h>

#include "golden_file.h"

namespace carousel::test {
namespace {

class GoldenGpt : public testing::TestWithParam<DType> {};

TEST_P(GoldenGpt, LayerNorm) {
  const DType dtype = GetParam();
  const Golden golden = read_golden("layer_norm.json");
  const Variable x = leaf(golden.at("x"), dtype), weight = leaf(golden.at("weight"), dtype);
  const Variable bias = leaf(golden.at("bias"), dtype);
  const Variable y = layer_norm(x, weight, bias);
  sum(y * golden.at("dy").to(dtype)).backward();
  expect_near(y.value(), golden.at("y"), "y");
  expect_near(x.grad(), golden.at("grad.x"), "x");
  expect_near(weight.grad(), golden.at("grad.weight"), "weight");
  expect_near(bias.grad(), golden.at("grad.bias"), "bias");
}

TEST_P(GoldenGpt, ScaledDotProductAttention) {
  const DType dtype = GetParam();
  const Golden golden = read_golden("attention.json");
  const Tensor visible = golden.at("visible").to(DType::boolean);
  const std::vector<std::pair<std::string, AttentionOptions>> cases = {
      {"plain", {}}, {"causal", {.causal = true}}, {"masked", {.causal = true, .visible = visible}}};
  for (const auto& [name, options] : cases) {
    SCOPED_TRACE(name);
    const Variable q = leaf(golden.at("q"), dtype), k = leaf(golden.at("k"), dtype), v = leaf(golden.at("v"), dtype);
    const Variable y = scaled_dot_product_attention(q, k, v, options);
    sum(y * golden.at("dy").to(dtype)).backward();
    expect_near(y.value(), golden.at(name + ".y"), "y");
    expect_near(q.grad(), golden.at(name + ".grad.q"), "q");
    expect_near(k.grad(), golden.at(name + ".grad.k"), "k");
    expect_near(v.grad(), golden.at(name + ".grad.v"), "v");
  }
}

TEST_P(GoldenGpt, Block) {
  const DType dtype = GetParam();
  const Golden golden = read_golden("gpt_block.json");
  Rng rng(0);
  for (const bool fused : {true, false}) {
    const GptBlock block({.input_size = 4, .hidden_size = 4, .dtype = dtype}, {.heads = 2}, rng);
    const auto same = [](const std::string& name) { return name; };
    set_parameters(block, golden, same);
    const Variable x = leaf(golden.at("x"), dtype);
    const State start = block.initial_state(2);
    const Variable y = (fused ? block.forward(x, start) : block.unroll(x, start)).output;
    sum(y * golden.at("dy").to(dtype)).backward();
    expect_near(y.value(), golden.at("y"), "y");
    expect_near(x.grad(), golden.at("grad.x"), "x");
    expect_gradients(block, golden, same);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenGpt, testing::Values(DType::float32, DType::float64),
                         [](const testing::TestParamInfo<DType>& each) { return std::string(to_string(each.param)); });

}  // namespace
}  // namespace carousel::test
