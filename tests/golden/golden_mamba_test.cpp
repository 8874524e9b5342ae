#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/mamba.h>

#include <gtest/gtest.h>

namespace carousel::test {
namespace {

struct Case {
  DType dtype;
  bool fused;
};

class GoldenMamba : public testing::TestWithParam<Case> {};

TEST_P(GoldenMamba, ForwardAndEveryGradientAreThoseOfPyTorch) {
  const auto [dtype, fused] = GetParam();
  const Golden golden = read_golden("mamba.json");
  const auto same = [](const std::string& name) { return name; };
  const auto weigh = [&golden, type = dtype](const Variable& value, const std::string& name) {
    return sum(value * golden.at("d" + name).to(type));
  };

  Rng rng(0);
  const Mamba layer(4, {.state_size = 3}, 1, rng, dtype);
  set_parameters(layer, golden, same);
  const Variable x = leaf(golden.at("x"), dtype);
  const State start{{"conv", leaf(golden.at("conv0"), dtype)}, {"h", leaf(golden.at("h0"), dtype)}};
  const SequenceResult result = fused ? layer.forward(x, start) : layer.unroll(x, start);
  expect_near(result.output.value(), golden.at("y"), "y");
  Variable loss = weigh(result.output, "y");
  for (const auto& [name, end] : result.state.values()) {
    expect_near(end.value(), golden.at(name), name);
    loss = loss + weigh(end, name);
  }
  loss.backward();
  expect_near(x.grad(), golden.at("grad.x"), "grad.x");
  for (const auto& [name, value] : start.values()) {
    expect_near(value.grad(), golden.at("grad." + name + "0"), "grad." + name + "0");
  }
  expect_gradients(layer, golden, same);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenMamba,
                         testing::Values(Case{DType::float32, true}, Case{DType::float32, false},
                                         Case{DType::float64, true}, Case{DType::float64, false}),
                         [](const testing::TestParamInfo<Case>& c) {
                           return std::string(to_string(c.param.dtype)) + (c.param.fused ? "" : "_unrolled");
                         });

}  // namespace
}  // namespace carousel::test
