#include "expect_error.h"
#include "parameter_gradients.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/additive_attention.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, DType::float64);
}

AdditiveAttention make() {
  Rng rng(1);
  return AdditiveAttention(3, 4, 5, rng, DType::float64);
}

// Weighs context and weights differently.
Variable weigh(const AdditiveAttention::Glimpse& glimpse) {
  return sum(glimpse.context * random(glimpse.context.shape(), 50)) +
         sum(glimpse.weights * random(glimpse.weights.shape(), 51));
}

TEST(AdditiveAttention, IsThePapersEquation) {
  const AdditiveAttention attention = make();
  ASSERT_EQ(attention.parameters().size(), 3U);
  EXPECT_EQ(attention.parameters()[0].name, "query.weight");
  EXPECT_EQ(attention.parameters()[1].name, "key.weight");
  EXPECT_EQ(attention.parameters()[2].name, "score.weight");
  const auto entry = [&](size_t parameter, int64_t row, int64_t column) {
    return attention.parameters()[parameter].variable.value().select(0, row).select(0, column).item();
  };
  const Tensor query = random({2, 3}, 2), values = random({2, 6, 4}, 3);
  const auto glimpse = attention.look(query, attention.memory(values));
  for (int64_t b = 0; b < 2; ++b) {
    std::vector<double> weights;
    double total = 0;
    for (int64_t j = 0; j < 6; ++j) {
      double energy = 0;
      for (int64_t a = 0; a < 5; ++a) {
        double inner = 0;
        for (int64_t q = 0; q < 3; ++q) inner += entry(0, a, q) * query.select(0, b).select(0, q).item();
        for (int64_t n = 0; n < 4; ++n) inner += entry(1, a, n) * values.select(0, b).select(0, j).select(0, n).item();
        energy += entry(2, 0, a) * std::tanh(inner);
      }
      weights.push_back(std::exp(energy));
      total += weights.back();
    }
    for (int64_t j = 0; j < 6; ++j) {
      weights[static_cast<size_t>(j)] /= total;
      EXPECT_NEAR(glimpse.weights.value().select(0, b).select(0, j).item(), weights[static_cast<size_t>(j)], 1e-13);
    }
    for (int64_t n = 0; n < 4; ++n) {
      double context = 0;
      for (int64_t j = 0; j < 6; ++j) {
        context += weights[static_cast<size_t>(j)] * values.select(0, b).select(0, j).select(0, n).item();
      }
      EXPECT_NEAR(glimpse.context.value().select(0, b).select(0, n).item(), context, 1e-13);
    }
  }
}

TEST(AdditiveAttention, GradientsPassTheCheckAlsoOfTheParameters) {
  for (const Tensor& lengths : {Tensor(), Tensor::from(std::vector<int64_t>{4, 2, 0})}) {
    AdditiveAttention attention = make();
    const Tensor query = random({3, 3}, 2), values = random({3, 4, 4}, 3);
    const auto run = [&](const Variable& q, const Variable& v) {  // two looks at one memory
      const auto memory = attention.memory(v, lengths);
      const auto first = attention.look(q, memory);
      return weigh(first) + weigh(attention.look(square(q), memory));
    };
    const GradcheckResult inputs =
        gradcheck([&](std::span<const Variable> in) { return run(in[0], in[1]); }, {query, values});
    EXPECT_TRUE(inputs) << inputs.message;
    test::expect_difference_quotients(attention, [&] { return run(query, values); });
  }
}

TEST(AdditiveAttention, WhatStandsBehindTheEndOfARowHasNoWeightAndNoGradient) {
  AdditiveAttention attention = make();
  const Tensor lengths = Tensor::from(std::vector<int64_t>{4, 2, 0});
  const Tensor clean = random({3, 4, 4}, 3);
  const auto run = [&](const Tensor& numbers) {
    attention.zero_grad();
    const Variable values = Variable::parameter(numbers), query = Variable::parameter(random({3, 3}, 2));
    const auto glimpse = attention.look(query, attention.memory(values, lengths));
    weigh(glimpse).backward();
    std::vector<Tensor> all{glimpse.weights.value(), glimpse.context.value(), values.grad(), query.grad()};
    for (const NamedParameter& parameter : attention.parameters()) all.push_back(parameter.variable.grad());
    return all;
  };
  const std::vector<Tensor> reference = run(clean);
  const Tensor behind = logical_not(before_end(lengths, 4));
  for (const double bad : {double{NAN}, double{INFINITY}}) {
    const Tensor numbers = where(behind.unsqueeze(2), Tensor::scalar(bad, DType::float64), clean);
    const std::vector<Tensor> results = run(numbers);
    for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(identical(results[i], reference[i])) << i;
  }
  EXPECT_TRUE(all(equal(where(behind, reference[0], zeros({}, DType::float64)), 0)));
  EXPECT_TRUE(all(equal(where(behind.unsqueeze(2), reference[2], zeros({}, DType::float64)), 0)));
  EXPECT_TRUE(all_close(sum(reference[0], {1}), Tensor::from({1, 1, 0}, {3}, DType::float64), 0, 1e-15));
  EXPECT_TRUE(all(equal(reference[1].select(0, 2), 0))) << "nothing to look at";
  EXPECT_TRUE(all(equal(reference[3].select(0, 2), 0)));
}

TEST(AdditiveAttention, ARowAloneIsTheRowInAPaddedBatch) {
  const AdditiveAttention attention = make();
  const Tensor query = random({2, 3}, 2), values = random({2, 6, 4}, 3);
  const auto both = attention.look(query, attention.memory(values, Tensor::from(std::vector<int64_t>{6, 2})));
  const auto alone =
      attention.look(query.slice(0, {.start = 1}), attention.memory(values.slice(0, {.start = 1}).slice(1, {0, 2})));
  EXPECT_TRUE(all_close(both.context.value().select(0, 1), alone.context.value().select(0, 0), 0, 1e-14));
  EXPECT_TRUE(
      all_close(both.weights.value().select(0, 1).slice(0, {0, 2}), alone.weights.value().select(0, 0), 0, 1e-14));
}

TEST(AdditiveAttention, NothingToLookAtGivesZeros) {
  const AdditiveAttention attention = make();
  const auto empty = attention.look(random({2, 3}, 2), attention.memory(zeros({2, 0, 4}, DType::float64)));
  EXPECT_TRUE(identical(empty.context.value(), zeros({2, 4}, DType::float64)));
  EXPECT_EQ(empty.weights.shape(), (Shape{2, 0}));
}

TEST(AdditiveAttention, NamesWhatDoesNotFit) {
  const AdditiveAttention attention = make();
  const Tensor values = random({2, 6, 4}, 3);
  const auto memory = attention.memory(values);
  expect_error<ShapeError>([&] { attention.memory(random({2, 6, 3}, 3)); }, {"values", "N = 4", "[2, 6, 3]"});
  expect_error<ValueError>([&] { attention.memory(values, Tensor::from(std::vector<int64_t>{6, 7})); }, {"[0, 6]"});
  expect_error<ShapeError>([&] { attention.look(random({3, 3}, 2), memory); }, {"query", "[2, 3]", "[3, 3]"});
  expect_error<ValueError>([&] { attention.look(zeros({2, 3}), memory); }, {"float32"});
  Rng rng(1);
  expect_error<ValueError>([&] { AdditiveAttention(3, 4, 0, rng); }, {"positive"});
}

}  // namespace
}  // namespace carousel
