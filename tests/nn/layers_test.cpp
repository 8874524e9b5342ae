#include "expect_error.h"

#include <carousel/autograd/reduce.h>
#include <carousel/nn/layers.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

TEST(Linear, IsXTimesTransposedWeightPlusBias) {
  Rng rng(1);
  const Linear layer(3, 2, {}, rng, DType::float64);
  const Tensor weight = layer.parameters()[0].variable.value();
  const Tensor bias = layer.parameters()[1].variable.value();
  const Tensor x = rng.normal({4, 3}, 0, 1, DType::float64);
  EXPECT_TRUE(all_close(layer.forward(x).value(), matmul(x, weight.transpose(0, 1)) + bias, 0, 1e-15));
  EXPECT_EQ(layer.forward(rng.normal({5, 4, 3}, 0, 1, DType::float64)).shape(), (Shape{5, 4, 2}));
}

TEST(Linear, NamesDecayAndBounds) {
  Rng rng(2);
  const Linear layer(16, 300, {}, rng);
  const auto parameters = layer.parameters();
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0].name, "weight");
  EXPECT_TRUE(parameters[0].decay);
  EXPECT_EQ(parameters[1].name, "bias");
  EXPECT_FALSE(parameters[1].decay);
  for (const NamedParameter& parameter : parameters) {
    const double largest = max(abs(parameter.variable.value())).item();
    EXPECT_LE(largest, 0.25);  // 1 / sqrt(16)
    EXPECT_GT(largest, 0.24);
  }
  EXPECT_EQ(Linear(16, 3, {.bias = false}, rng).parameters().size(), 1U);
  expect_error<ValueError>([&] { Linear(0, 3, {}, rng); }, {"[Linear]", "0 and 3"});
}

TEST(Linear, DrawsNormalWeightsWithADeviation) {
  Rng rng(7);
  const Linear layer(64, 64, {.deviation = 0.02}, rng);
  const auto parameters = layer.parameters();
  // 4096 draws: the deviation is met to 1 / sqrt(2 * 4096), about 1.1 %; four times that.
  EXPECT_NEAR(norm(parameters[0].variable.value()) / 64, 0.02, 0.045 * 0.02);
  EXPECT_GT(max(abs(parameters[0].variable.value())).item(), 0.05);  // as uniform numbers it would be 0.035
  EXPECT_TRUE(identical(parameters[1].variable.value(), zeros({64})));
}

TEST(Embedding, LooksRowsUp) {
  Rng rng(3);
  const Embedding layer(5, 3, {}, rng);
  const Tensor weight = layer.parameters()[0].variable.value();
  const Tensor tokens = Tensor::from(std::vector<int64_t>{4, 0, 4, 2}, {2, 2});
  const Variable y = layer.forward(tokens);
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_TRUE(identical(y.value().select(0, 0).select(0, 0).contiguous(), weight.select(0, 4).contiguous()));
  sum(y).backward();
  const Tensor counts = layer.parameters()[0].variable.grad().select(1, 0);
  EXPECT_EQ(counts.to_vector<float>(), (std::vector<float>{1, 0, 1, 0, 2}));
}

TEST(Embedding, NamesTokenAndVocabulary) {
  Rng rng(4);
  const Embedding layer(5, 3, {}, rng);
  expect_error<IndexError>([&] { layer.forward(Tensor::from(std::vector<int64_t>{5}, {1})); }, {"5"});
  expect_error<IndexError>([&] { layer.forward(Tensor::from(std::vector<int64_t>{-1}, {1})); }, {"-1", "5"});
}

TEST(LayerNormModule, StartsAsTheIdentityOfNormalisedRowsAndIsNotDecayed) {
  Rng rng(5);
  const LayerNorm layer(8, {}, DType::float64);
  for (const NamedParameter& parameter : layer.parameters()) EXPECT_FALSE(parameter.decay) << parameter.name;
  const Tensor y = layer.forward(rng.normal({4, 8}, 3, 2, DType::float64)).value();
  EXPECT_TRUE(all_close(mean(y, {1}), zeros({4}, DType::float64), 0, 1e-14));
  EXPECT_TRUE(all_close(mean(square(y), {1}), ones({4}, DType::float64), 1e-4));  // eps 1e-5 beside a variance of 4
  expect_error<ValueError>([] { LayerNorm(0, {}); }, {"[LayerNorm]", "0"});
  expect_error<ValueError>([] { LayerNorm(3, {.eps = -1}); }, {"eps", "-1"});
}

TEST(RmsNormModule, DividesByTheRootOfTheMeanSquareAndIsNotDecayed) {
  const RmsNorm layer(2, {.eps = 1e-12}, DType::float64);
  ASSERT_EQ(layer.parameters().size(), 1U);
  EXPECT_FALSE(layer.parameters()[0].decay);
  const Tensor y = layer.forward(Tensor::from({3, 4, -6, 8}, {2, 2}, DType::float64)).value();
  const double root = std::sqrt(12.5);  // of (9 + 16) / 2
  EXPECT_TRUE(all_close(y, Tensor::from({3 / root, 4 / root, -3 / root, 4 / root}, {2, 2}, DType::float64), 1e-12));
  expect_error<ValueError>([] { RmsNorm(0, {}); }, {"[RmsNorm]", "0"});
}

TEST(DropoutModule, IsTheIdentityInEvaluation) {
  Rng rng(6);
  Dropout layer(0.5);
  const Variable x = ones({100, 10});
  EXPECT_FALSE(identical(layer.forward(x, rng).value(), x.value()));
  layer.eval();
  const uint64_t counter = rng.counter();
  EXPECT_TRUE(identical(layer.forward(x, rng).value(), x.value()));
  EXPECT_EQ(rng.counter(), counter);
  expect_error<ValueError>([] { Dropout(1.0); }, {"[Dropout]", "[0, 1)"});
}

}  // namespace
}  // namespace carousel
