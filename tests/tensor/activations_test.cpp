#include <carousel/tensor/activations.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include "support.h"

namespace carousel {
namespace {

using test::expect_error;

TEST(Activations, DoNotDependOnHowOperandsLieInMemory) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Tensor x = Rng(1).normal({70, 301}, 0, 3, dtype), dy = Rng(2).normal({70, 301}, 0, 1, dtype);
    const Tensor turned = dy.transpose(0, 1).contiguous().transpose(0, 1);
    for (const auto& function : {softplus_backward, silu_backward, gelu_backward, silu_gate}) {
      EXPECT_TRUE(identical(function(x, dy), function(x, turned)));
      const Slice third{.start = 1, .step = 3};
      EXPECT_TRUE(identical(function(x, dy).slice(1, third), function(x.slice(1, third), dy.slice(1, third))));
    }
    const auto [dx, dz] = silu_gate_backward(x, dy, x);
    const auto [dx_turned, dz_turned] = silu_gate_backward(x, turned, x);
    EXPECT_TRUE(identical(dx, dx_turned));
    EXPECT_TRUE(identical(dz, dz_turned));
  }
}

TEST(Activations, TheGateRoundsAsItsParts) {
  const Tensor y = Rng(1).normal({70, 301}), z = Rng(2).normal({70, 301}, 0, 3);
  EXPECT_TRUE(identical(silu_gate(y, z), y * silu(z)));
  EXPECT_TRUE(identical(silu_gate_backward(y, z, y).first, y * silu(z)));
}

TEST(Activations, ErrorsNameOperationRuleAndValues) {
  const Tensor x = zeros({2, 3}), twice = zeros({2, 3}, DType::float64), whole = zeros({2, 3}, DType::int64);
  expect_error<ShapeError>("[gelu] operands must have one shape: got [2, 3] and [3]",
                           [&] { gelu_backward(x, zeros({3})); });
  expect_error<ValueError>("[silu_gate] operands must have one dtype: got float32 and float64",
                           [&] { silu_gate(x, twice); });
  expect_error<ValueError>("[silu] needs float32 or float64: got int64", [&] { silu_backward(whole, whole); });
  expect_error<ShapeError>("[silu_gate] operands must have one shape: got [2, 3] and [3]",
                           [&] { silu_gate_backward(x, x, zeros({3})); });
}

}  // namespace
}  // namespace carousel
