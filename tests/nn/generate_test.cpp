#include "expect_error.h"

#include <carousel/nn/generate.h>
#include <carousel/tensor/factory.h>

#include <cmath>
#include <limits>

namespace carousel {
namespace {

using test::expect_error;

// How often each index comes out of 1,000 draws.
std::vector<int> draws(std::initializer_list<double> logits, const SamplingOptions& options) {
  const Tensor tensor = Tensor::from(logits, {static_cast<int64_t>(logits.size())});
  Rng rng(1);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < 1000; ++i) ++counts[static_cast<size_t>(sample(tensor, options, rng))];
  return counts;
}

TEST(Sample, ColdIsTheLargest) {  // HD-27
  for (const double temperature : {0.0, 1e-8, 0.01}) {
    EXPECT_EQ(draws({0, 100, 99}, {.temperature = temperature}), (std::vector<int>{0, 1000, 0})) << temperature;
  }
}

TEST(Sample, AtOneItFollowsTheSoftmax) {  // HD-27: 731 expected, five standard errors either way would be 70
  const std::vector<int> counts = draws({0, 100, 99}, {.temperature = 1});
  EXPECT_EQ(counts[0], 0);
  EXPECT_GE(counts[1], 685);
  EXPECT_LE(counts[1], 777);
}

TEST(Sample, RefusesTemperaturesThatAreNone) {  // HD-27
  for (const double temperature : {-1.0, double{NAN}, double{INFINITY}}) {
    expect_error<ValueError>([&] { draws({0, 1}, {.temperature = temperature}); }, {"[sample]", "temperature"});
  }
}

TEST(Sample, TopKLimitsAndZeroDoesNot) {  // HD-28
  const auto of = [](int64_t k, double temperature) {
    return draws({0.5, -1.2, 3.1, 0.8, -0.3}, {.temperature = temperature, .top_k = k});
  };
  const std::vector<int> only = {0, 0, 1000, 0, 0};
  EXPECT_EQ(of(1, 1), only);
  const std::vector<int> free = of(5, 1);
  EXPECT_GT(free[1], 0);
  for (const int64_t k : {6, 50000, 0}) {
    EXPECT_EQ(of(k, 1), free) << k;
    EXPECT_EQ(of(k, 0), only) << k;
  }
  const std::vector<int> two = of(2, 1);
  EXPECT_EQ(two[0] + two[1] + two[4], 0);
  EXPECT_GT(two[3], 0);
  expect_error<ValueError>([&] { of(-1, 1); }, {"[sample]", "top_k", "-1"});
}

TEST(Sample, OfEqualLogitsTheFirstIsTheLargest) {
  EXPECT_EQ(draws({1, 1, 1}, {.temperature = 0}), (std::vector<int>{1000, 0, 0}));
  EXPECT_EQ(draws({1, 1, 1}, {.temperature = 1, .top_k = 1}), (std::vector<int>{1000, 0, 0}));
}

TEST(Sample, MinusInfinityIsNeverDrawnAndNanIsRefused) {
  EXPECT_EQ(draws({-INFINITY, 0}, {}), (std::vector<int>{0, 1000}));
  expect_error<ValueError>([] { draws({NAN, 0}, {}); }, {"[sample]", "NaN"});
  expect_error<ValueError>([] { draws({-INFINITY, -INFINITY}, {}); }, {"finite", "-inf"});
  Rng rng(1);
  expect_error<ShapeError>([&] { sample(zeros({2, 2}), {}, rng); }, {"[V]", "[2, 2]"});
}

class Generate : public testing::Test {
 protected:
  std::vector<int64_t> run(const std::vector<int64_t>& prompt, const GenerateOptions& options, uint64_t seed = 5) {
    Rng rng(seed);
    return generate(model_, prompt, options, rng);
  }
  static CharacterModel make() {
    Rng rng(1);
    return CharacterModel({.vocabulary_size = 11, .embedding_size = 8, .hidden_size = 16, .layers = 2, .dropout = 0.5},
                          layer_kind("rnn").default_config(), rng);
  }
  CharacterModel model_ = make();
};

TEST_F(Generate, SameSeedSameTokensAnotherSeedOthers) {  // HD-15
  const std::vector<int64_t> tokens = run({1, 2}, {.length = 200});
  EXPECT_EQ(tokens.size(), 200U);
  EXPECT_EQ(run({1, 2}, {.length = 200}), tokens);
  EXPECT_NE(run({1, 2}, {.length = 200}, 6), tokens);
}

TEST_F(Generate, GreedyEqualsReadingTheWholeTextAnewForEveryToken) {
  std::vector<int64_t> text = {3, 1, 4};
  for (int i = 0; i < 20; ++i) {
    const Tensor tokens = Tensor::from(text, {1, static_cast<int64_t>(text.size())});
    const Tensor logits = model_.forward(tokens, model_.initial_state(1)).logits.value().select(1, -1).select(0, 0);
    Rng unused(0);
    text.push_back(sample(logits, {.temperature = 0}, unused));
  }
  const std::vector<int64_t> continued(text.begin() + 3, text.end());
  EXPECT_EQ(run({3, 1, 4}, {.length = 20, .sampling = {.temperature = 0}}), continued);
}

TEST_F(Generate, AnEmptyPromptBeginsAnywhere) {
  std::vector<int> first(11);
  for (uint64_t seed = 0; seed < 200; ++seed) ++first[static_cast<size_t>(run({}, {.length = 1}, seed).front())];
  for (const int count : first) EXPECT_GT(count, 0);
}

TEST_F(Generate, StreamsTokensAndStopsWhenAsked) {
  std::vector<int64_t> seen;
  const auto on_token = [&](const GeneratedToken& token) {
    seen.push_back(token.token);
    return seen.size() < 5;
  };
  EXPECT_EQ(run({1}, {.length = 100, .on_token = on_token}), seen);
  EXPECT_EQ(seen.size(), 5U);
}

TEST_F(Generate, AsksForNoMemoryBeforeThereAreTokens) {
  const GenerateOptions endless{.length = std::numeric_limits<int64_t>::max(),
                                .on_token = [](const GeneratedToken&) { return false; }};
  EXPECT_EQ(run({1}, endless).size(), 1U);
}

TEST_F(Generate, LeavesNoGraphAndNoGradient) {
  run({1}, {.length = 10});
  EXPECT_EQ(live_nodes(), 0);
  EXPECT_TRUE(model_.training());
}

TEST_F(Generate, RefusesWhatMakesNoSense) {
  expect_error<ValueError>([&] { run({1}, {.length = -1}); }, {"[generate]", "length", "-1"});
  expect_error<IndexError>([&] { run({1, 11}, {}); }, {"[generate]", "[0, 11)", "got 11"});
  expect_error<ValueError>([&] { run({1}, {.length = 0, .sampling = {.temperature = -1}}); }, {"temperature"});
  EXPECT_TRUE(run({1}, {.length = 0}).empty());
}

}  // namespace
}  // namespace carousel
