#include "expect_error.h"

#include <carousel/nn/character_model.h>
#include <carousel/nn/functional.h>
#include <carousel/tensor/compare.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

const CharacterModelConfig small{.vocabulary_size = 7, .embedding_size = 3, .hidden_size = 4, .layers = 2};

CharacterModel make(const CharacterModelConfig& config = small, uint64_t seed = 1, DType dtype = DType::float32) {
  Rng rng(seed);
  return CharacterModel(config, layer_kind(config.model).default_config(), rng, dtype);
}

TEST(CharacterModel, NamesEveryParameterByItsPath) {
  const CharacterModel model = make();
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"embedding.weight", "stack.layers.0.weight_ih", "stack.layers.0.weight_hh",
                                      "stack.layers.0.bias_ih", "stack.layers.0.bias_hh", "stack.layers.1.weight_ih",
                                      "stack.layers.1.weight_hh", "stack.layers.1.bias_ih", "stack.layers.1.bias_hh",
                                      "head.weight", "head.bias"}));
  EXPECT_EQ(model.parameter_count(), 7 * 3 + (4 * 3 + 4 * 4 + 8) + (4 * 4 + 4 * 4 + 8) + (7 * 4 + 7));
}

TEST(CharacterModel, LogitsAreOneRowAPositionAndTheLossTheirCrossEntropy) {
  const CharacterModel model = make(small, 1, DType::float64);
  Rng rng(2);
  const Tensor tokens = rng.integers({5, 9}, 0, 7);
  const Tensor inputs = tokens.slice(1, {.stop = 8});
  const Tensor targets = tokens.slice(1, {.start = 1});
  const ModelResult result = model.forward(inputs, model.initial_state(5));
  EXPECT_EQ(result.logits.shape(), (Shape{5, 8, 7}));
  const LossResult loss = model.loss(inputs, targets, model.initial_state(5));
  EXPECT_EQ(loss.loss.value().item(), cross_entropy(result.logits, targets).value().item());
  EXPECT_NEAR(loss.loss.value().item(), std::log(7), 0.5);  // an untrained model knows nothing
}

TEST(CharacterModel, TimeMajorTokensGiveTimeMajorLogits) {
  const CharacterModel model = make();
  Rng rng(3);
  const Tensor tokens = rng.integers({8, 5}, 0, 7).transpose(0, 1);
  const Tensor logits = model.forward(tokens, model.initial_state(5)).logits.value();
  EXPECT_EQ(logits.shape(), (Shape{5, 8, 7}));
  EXPECT_TRUE(logits.transpose(0, 1).is_contiguous());
  const Tensor turned = model.forward(tokens.contiguous(), model.initial_state(5)).logits.value();
  EXPECT_TRUE(all_close(logits, turned, 1e-6, 1e-6));  // the same sums, in float
}

TEST(CharacterModel, SameSeedSameModel) {
  const CharacterModel a = make(), b = make(), c = make(small, 2);
  const Tensor first = a.parameters()[2].variable.value();
  EXPECT_TRUE(identical(first, b.parameters()[2].variable.value()));
  EXPECT_FALSE(identical(first, c.parameters()[2].variable.value()));
}

TEST(CharacterModel, RefusesConfigurationsOutOfRange) {
  expect_error<ValueError>([] { make({.vocabulary_size = 0}); }, {"[CharacterModel]", "vocabulary_size", "got 0"});
  expect_error<ValueError>([] { make({.vocabulary_size = 5, .hidden_size = -1}); }, {"hidden_size", "-1"});
  expect_error<ValueError>([] { make({.vocabulary_size = 5, .dropout = 1.5}); }, {"dropout", "1.5"});
  Rng rng(1);
  expect_error<ValueError>(
      [&] { CharacterModel({.model = "rmn", .vocabulary_size = 5}, layer_kind("rnn").default_config(), rng); },
      {"model", "'rmn'"});
}

TEST(CharacterModel, NamesTokensOutOfTheVocabulary) {
  const CharacterModel model = make();
  const Tensor tokens = Tensor::from(std::vector<int64_t>{1, 7}, {1, 2});
  expect_error<IndexError>([&] { model.forward(tokens, model.initial_state(1)); }, {"7"});
  expect_error<ShapeError>([&] { model.forward(tokens.select(0, 0), model.initial_state(1)); }, {"[B, T]", "[2]"});
}

}  // namespace
}  // namespace carousel
