#include "expect_error.h"

#include <carousel/nn/generate.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

const std::vector<double> logits = {2.0, -1.0, 0.5, 3.0, 2.5, -4.0};

std::vector<double> of(const SamplingOptions& options, std::span<const int64_t> text = {}) {
  return probabilities(Tensor::from(logits, {6}), options, text);
}

std::vector<double> softmax_of(std::vector<double> values) {
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value);
  for (double& value : values) value /= sum;
  return values;
}

// The same kept, all else 0, adding up to 1.
std::vector<double> only(const std::vector<double>& p, const std::vector<size_t>& kept) {
  std::vector<double> result(p.size());
  double sum = 0;
  for (const size_t i : kept) sum += p[i];
  for (const size_t i : kept) result[i] = p[i] / sum;
  return result;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& right) {
  ASSERT_EQ(got.size(), right.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-15) << i;  // sums of six doubles below 1
}

TEST(Probabilities, AreTheSoftmaxOfLogitsOverTemperature) {
  expect_near(of({}), softmax_of(logits));
  std::vector<double> halved = logits;
  for (double& value : halved) value /= 2;
  expect_near(of({.temperature = 2}), softmax_of(halved));
  expect_near(of({.temperature = 0}), {0, 0, 0, 1, 0, 0});
}

TEST(Probabilities, NucleusKeepsTheLikeliestThatReachIt) {
  const std::vector<double> p = softmax_of(logits);  // 0.173, 0.009, 0.039, 0.471, 0.286, 0.0004
  expect_near(of({.top_p = 0.4}), only(p, {3}));
  expect_near(of({.top_p = p[3] + 1e-9}), only(p, {3, 4}));
  expect_near(of({.top_p = 0.9}), only(p, {3, 4, 0}));
  expect_near(of({.top_p = 1e-9}), only(p, {3}));
  expect_near(of({.top_p = 1}), p);
}

TEST(Probabilities, MinPKeepsAShareOfTheLikeliest) {
  const std::vector<double> p = softmax_of(logits);
  expect_near(of({.min_p = 0.3}), only(p, {3, 4, 0}));
  expect_near(of({.min_p = 0.4}), only(p, {3, 4}));
  expect_near(of({.min_p = 1}), only(p, {3}));
}

TEST(Probabilities, PenaltyDividesWhatIsAboveZeroAndMultipliesWhatIsNot) {
  const std::vector<int64_t> text = {1, 3, 3, 5};
  std::vector<double> penalized = logits;
  penalized[1] *= 2;
  penalized[3] /= 2;
  penalized[5] *= 2;
  expect_near(of({.repetition_penalty = 2}, text), softmax_of(penalized));
  penalized = logits;
  penalized[5] *= 2;
  expect_near(of({.repetition_penalty = 2, .repetition_window = 1}, text), softmax_of(penalized));
}

TEST(Probabilities, FiltersApplyInTheirOrder) {
  // After top-k 2 the nucleus of 0.6 is the likeliest alone: 0.62 of what is left. Without top-k it is two of them.
  expect_near(of({.top_k = 2, .top_p = 0.6}), {0, 0, 0, 1, 0, 0});
  expect_near(of({.top_p = 0.6}), only(softmax_of(logits), {3, 4}));
  // The temperature is there before the nucleus: nearly even shares need three of six for 0.49.
  const std::vector<double> warm = of({.temperature = 1000, .top_p = 0.49});
  EXPECT_EQ(std::count(warm.begin(), warm.end(), 0.0), 3);
}

TEST(Probabilities, RefuseOptionsOutsideTheirRange) {
  expect_error<ValueError>([] { of({.top_p = 0}); }, {"[sample]", "top_p", "(0, 1]"});
  expect_error<ValueError>([] { of({.top_p = NAN}); }, {"top_p", "nan"});
  expect_error<ValueError>([] { of({.min_p = 1.5}); }, {"min_p", "1.5"});
  expect_error<ValueError>([] { of({.repetition_penalty = 0}); }, {"repetition_penalty", "> 0"});
  expect_error<ValueError>([] { of({.repetition_window = -1}); }, {"repetition_window", "-1"});
  const std::vector<int64_t> stranger = {6};
  expect_error<IndexError>([&] { of({.repetition_penalty = 2}, stranger); }, {"[0, 6)", "6"});
}

TEST(LogProbability, IsThatOfTheModelItself) {
  EXPECT_NEAR(log_probability(Tensor::from(logits, {6}), 4), std::log(softmax_of(logits)[4]), 1e-15);
  EXPECT_EQ(log_probability(Tensor::from(std::vector<double>{0, -INFINITY}, {2}), 1), -INFINITY);
  expect_error<IndexError>([] { log_probability(Tensor::from(logits, {6}), 6); }, {"[0, 6)", "6"});
}

TEST(GenerateRows, AreTheTextsOfTheirGenerators) {
  for (const LayerKind& kind : layer_kinds()) {
    SCOPED_TRACE(kind.name);
    Rng weights(1);
    const CharacterModel model(
        {.model = kind.name, .vocabulary_size = 11, .embedding_size = 16, .hidden_size = 16, .context = 8},
        kind.default_config(), weights, DType::float64);  // last bits decide no draw
    const GenerateOptions options{.length = 20};          // past the context
    const std::vector<int64_t> prompt = {3, 1, 4};
    std::vector<Rng> rngs = {Rng(5), Rng(6), Rng(7)};
    const auto texts = generate_rows(model, prompt, options, rngs);
    for (size_t row = 0; row < texts.size(); ++row) {
      Rng rng(5 + row);
      EXPECT_EQ(generate(model, prompt, options, rng), texts[row]);
    }
  }
}

TEST(GenerateRows, EachEndsByItself) {
  Rng weights(1);
  const CharacterModel model({.vocabulary_size = 11, .embedding_size = 8, .hidden_size = 16},
                             layer_kind("rnn").default_config(), weights);
  std::vector<Rng> rngs = {Rng(5), Rng(6)};
  std::vector<std::vector<int64_t>> seen(2);
  const auto on_token = [&seen](const GeneratedToken& token) {
    seen[static_cast<size_t>(token.row)].push_back(token.token);
    EXPECT_LT(token.log_probability, 0);
    return token.row == 1 || seen[0].size() < 3;
  };
  const auto texts = generate_rows(model, std::vector<int64_t>{1},
                                   {.length = 9, .log_probabilities = true, .on_token = on_token}, rngs);
  EXPECT_EQ(texts, seen);
  EXPECT_EQ(texts[0].size(), 3U);
  EXPECT_EQ(texts[1].size(), 9U);
}

}  // namespace
}  // namespace carousel
