#include "golden_file.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/bidirectional.h>
#include <carousel/nn/registry.h>

#include <gtest/gtest.h>

#include <tuple>

namespace carousel::test {
namespace {

/// Kind, dtype, and whether the rows are packed to their lengths.
class GoldenBidirectional : public testing::TestWithParam<std::tuple<std::string, DType, bool>> {};

// "backward.weight_ih" as PyTorch calls it: "weight_ih_l0_reverse".
std::string torch_name(const std::string& path) {
  const size_t dot = path.find('.');
  return path.substr(dot + 1) + "_l0" + (path.substr(0, dot) == "backward" ? "_reverse" : "");
}

// The entry of a tensor [2, B, H] that "forward.h" or "backward.h" names.
struct StateEntry {
  explicit StateEntry(const std::string& path)
      : direction(path[0] == 'b' ? 1 : 0), name(path.substr(path.find('.') + 1)) {}
  int64_t direction;
  std::string name;
};

TEST_P(GoldenBidirectional, ForwardAndEveryGradientAreThoseOfPyTorch) {
  const auto& [kind, dtype, packed] = GetParam();
  const Golden golden = read_golden("bidirectional_" + kind + ".json");
  const std::string way = packed ? "packed." : "whole.";
  Rng rng(0);
  const auto make = [&rng, &name = kind, dtype = dtype] {
    return layer_kind(name).make({2, 3, dtype}, layer_kind(name).default_config(), rng);
  };
  const Bidirectional layer(make(), make());
  set_parameters(layer, golden, torch_name);
  const Variable x = leaf(golden.at("x"), dtype);
  State start;
  for (const auto& [path, zero] : layer.initial_state(3).values()) {
    const StateEntry entry(path);
    start.set(path, leaf(golden.at(entry.name + "0").select(0, entry.direction), dtype));
  }

  const Tensor lengths = packed ? golden.at("lengths").to(DType::int64) : Tensor();
  const SequenceResult result = layer.forward(x, start, {.lengths = lengths});
  expect_near(result.output.value(), golden.at(way + "y"), "y");
  Variable loss = sum(result.output * golden.at("dy").to(dtype));
  for (const auto& [path, end] : result.state.values()) {
    const StateEntry entry(path);
    expect_near(end.value(), golden.at(way + entry.name).select(0, entry.direction), path);
    loss = loss + sum(end * golden.at("d" + entry.name).select(0, entry.direction).to(dtype));
  }
  loss.backward();
  expect_near(x.grad(), golden.at(way + "grad.x"), "grad.x");
  for (const auto& [path, value] : start.values()) {
    const StateEntry entry(path);
    expect_near(value.grad(), golden.at(way + "grad." + entry.name + "0").select(0, entry.direction), path);
  }
  for (const NamedParameter& parameter : layer.parameters()) {
    expect_near(parameter.variable.grad(), golden.at(way + "grad." + torch_name(parameter.name)), parameter.name);
  }
}

std::string case_name(const testing::TestParamInfo<GoldenBidirectional::ParamType>& info) {
  const auto& [kind, dtype, packed] = info.param;
  return kind + "_" + std::string(to_string(dtype)) + (packed ? "_packed" : "");
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenBidirectional,
                         testing::Combine(testing::Values("lstm", "gru"),
                                          testing::Values(DType::float32, DType::float64), testing::Bool()),
                         case_name);

}  // namespace
}  // namespace carousel::test
