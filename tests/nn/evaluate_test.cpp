#include "expect_error.h"

#include <carousel/nn/evaluate.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

class Evaluate : public testing::Test {
 protected:
  static CharacterModel make() {
    Rng rng(1);
    return CharacterModel({.vocabulary_size = 9, .embedding_size = 4, .hidden_size = 6, .layers = 2, .dropout = 0.5},
                          layer_kind("rnn").default_config(), rng, DType::float64);
  }
  // -log p of every token after the first, by the plainest means: one long row.
  double plain(const Tensor& tokens) const {
    const int64_t count = tokens.numel() - 1;
    const ModelResult result = model_.forward(tokens.slice(0, {.stop = count}).unsqueeze(0), model_.initial_state(1));
    const Tensor log_p = log_softmax(result.logits.value().select(0, 0), 1);
    return -mean(gather(log_p, 1, tokens.slice(0, {.start = 1}).unsqueeze(1))).item();
  }

  CharacterModel model_ = make();
  Rng rng_{2};
  Tensor tokens_ = rng_.integers({103}, 0, 9);
};

TEST_F(Evaluate, ScoresEveryTokenAfterTheFirstOnceWhateverTheWindow) {
  const double expected = plain(tokens_);
  for (const int64_t window : {1, 7, 50, 102, 1024}) {
    EXPECT_NEAR(evaluate(model_, tokens_, {.window = window}), expected, 1e-12) << window;
  }
}

TEST_F(Evaluate, SeveralStreamsScoreEveryTokenToo) {
  // 102 scored tokens in 4 streams of 25; the last goes on for the 2 that remain.
  double nats = 0;
  for (int64_t stream = 0; stream < 4; ++stream) {
    const int64_t stop = stream == 3 ? 103 : 25 * stream + 26;
    const Tensor part = tokens_.slice(0, {.start = 25 * stream, .stop = stop});
    nats += plain(part) * static_cast<double>(part.numel() - 1);
  }
  EXPECT_NEAR(evaluate(model_, tokens_, {.streams = 4, .window = 10}), nats / 102, 1e-12);
}

TEST_F(Evaluate, StreamsThatReadAllBeforeThemScoreAsOneDoes) {
  // Two pieces of 51, of which the second first reads the whole first one.
  for (const int64_t window : {7, 50, 1024}) {
    EXPECT_NEAR(evaluate(model_, tokens_, {.streams = 2, .window = window, .warm_up = 51}), plain(tokens_), 1e-12);
  }
}

TEST_F(Evaluate, AWarmUpIsReadAndNotScored) {
  // Three pieces of 34; the later two read ten tokens more, from the zero state.
  const auto sum_of = [this](int64_t start, int64_t stop) {  // over the tokens after `start`
    return plain(tokens_.slice(0, {.start = start, .stop = stop + 1})) * static_cast<double>(stop - start);
  };
  double nats = sum_of(0, 34);
  for (const int64_t piece : {34, 68}) nats += sum_of(piece - 10, piece + 34) - sum_of(piece - 10, piece);
  EXPECT_NEAR(evaluate(model_, tokens_, {.streams = 3, .window = 6, .warm_up = 10}), nats / 102, 1e-12);
}

TEST(EvaluateQuickly, HasTheLossOfTheExactReading) {
  Rng rng(3);
  const Tensor tokens = rng.integers({20001}, 0, 9);
  const EvaluateOptions quick = quick_reading(tokens.numel());
  EXPECT_EQ(quick.streams, 4);
  EXPECT_EQ(quick_reading(4000).streams, 1);
  EXPECT_EQ(quick_reading(1 << 20).streams, 16);
  const CharacterModel model({.model = "ssm", .vocabulary_size = 9, .embedding_size = 8, .hidden_size = 8},
                             layer_kind("ssm").default_config(), rng, DType::float64);
  // The slowest states of a fresh Mamba keep a third of what was 1,024 tokens ago, which matters to few guesses.
  const double exact = evaluate(model, tokens);
  EXPECT_NEAR(evaluate(model, tokens, quick), exact, 1e-7);
  EXPECT_GT(std::abs(evaluate(model, tokens, {.streams = quick.streams, .window = quick.window}) - exact), 1e-6);
}

TEST_F(Evaluate, TouchesNeitherModeNorGraph) {
  model_.train();
  evaluate(model_, tokens_);
  EXPECT_TRUE(model_.training());
  EXPECT_EQ(live_nodes(), 0);
  model_.eval();
  EXPECT_NEAR(evaluate(model_, tokens_), plain(tokens_), 1e-12);
  EXPECT_FALSE(model_.training());
}

TEST_F(Evaluate, RefusesTooShortTexts) {
  const auto run = [&](int64_t count, const EvaluateOptions& options) {
    evaluate(model_, zeros({count}, DType::int64), options);
  };
  expect_error<ValueError>([&] { run(1, {}); }, {"[evaluate]", "at least 2", "got 1"});
  expect_error<ValueError>([&] { run(0, {}); }, {"at least 2", "got 0"});
  expect_error<ValueError>([&] { run(4, {.streams = 4}); }, {"at least 5", "got 4"});
  expect_error<ValueError>([&] { run(4, {.window = 0}); }, {"positive", "0"});
  expect_error<ValueError>([&] { run(21, {.streams = 2, .warm_up = 11}); }, {"[evaluate]", "at most the 10", "got 11"});
  expect_error<ShapeError>([&] { evaluate(model_, zeros({2, 2}, DType::int64)); }, {"[N]", "[2, 2]"});
}

}  // namespace
}  // namespace carousel
