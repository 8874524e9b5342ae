#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/mamba.h>
#include <carousel/tensor/elementwise.h>

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
  const std::map<std::string, Tensor> golden = read_golden("mamba.json");
  // As golden_test.cpp: both programs round differently, and nothing else.
  const double tolerance = dtype == DType::float32 ? 1e-5 : 1e-9;
  const auto expect_near = [&golden, tolerance](const Tensor& ours, const std::string& name) {
    const Tensor& theirs = golden.at(name);
    ASSERT_EQ(ours.shape(), theirs.shape()) << name;
    EXPECT_LE(max(abs(ours.to(DType::float64) - theirs)).item(), tolerance) << name;
  };
  const auto leaf = [&golden, type = dtype](const std::string& name) {
    return Variable::parameter(golden.at(name).to(type).clone());
  };
  const auto weigh = [&golden, type = dtype](const Variable& value, const std::string& name) {
    return sum(value * golden.at("d" + name).to(type));
  };

  Rng rng(0);
  const Mamba layer(4, {.state_size = 3}, 1, rng, dtype);
  for (const NamedParameter& parameter : layer.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(golden.at(parameter.name));
  }
  const Variable x = leaf("x");
  const State start{{"conv", leaf("conv0")}, {"h", leaf("h0")}};
  const SequenceResult result = fused ? layer.forward(x, start) : layer.unroll(x, start);
  expect_near(result.output.value(), "y");
  Variable loss = weigh(result.output, "y");
  for (const auto& [name, end] : result.state.values()) {
    expect_near(end.value(), name);
    loss = loss + weigh(end, name);
  }
  loss.backward();
  expect_near(x.grad(), "grad.x");
  for (const auto& [name, value] : start.values()) expect_near(value.grad(), "grad." + name + "0");
  for (const NamedParameter& parameter : layer.parameters()) {
    expect_near(parameter.variable.grad(), "grad." + parameter.name);
  }
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenMamba,
                         testing::Values(Case{DType::float32, true}, Case{DType::float32, false},
                                         Case{DType::float64, true}, Case{DType::float64, false}),
                         [](const testing::TestParamInfo<Case>& c) {
                           return std::string(to_string(c.param.dtype)) + (c.param.fused ? "" : "_unrolled");
                         });

}  // namespace
}  // namespace carousel::test
