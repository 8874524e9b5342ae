#include "common/recall.h"

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <memory>

namespace carousel::examples {
namespace {

// A model that, whatever it reads, expects the symbols in the order of the alphabet, or in the opposite one.
std::unique_ptr<CharacterModel> make_alphabetical(int64_t symbols, double slope) {
  Rng rng(1);
  auto model = std::make_unique<CharacterModel>(
      CharacterModelConfig{.vocabulary_size = symbols, .embedding_size = 4, .hidden_size = 4},
      layer_kind("rnn").default_config(), rng);
  for (const NamedParameter& parameter : model->parameters()) {
    if (parameter.name != "head.bias") continue;
    Tensor bias = parameter.variable.value();  // shares its memory
    bias.copy_(arange(symbols).to(DType::float32) * slope);
  }
  return model;
}

TEST(MeasureRecall, AsksForTheFirstLetterAmongTheCandidates) {
  const Stories stories = make_stories({.bytes = 60'000});
  const Vocabulary vocabulary(stories.text);
  const int64_t start = 5'000, count = 150;
  int64_t asked = 0, first = 0, last = 0;  // candidates are in the order of the alphabet
  for (const StoryAnswer& answer : stories.answers) {
    if (answer.first_mention < start || asked == count) continue;
    asked += 1;
    first += answer.word == answer.candidates->front() ? 1 : 0;
    last += answer.word == answer.candidates->back() ? 1 : 0;
  }
  ASSERT_EQ(asked, count);
  for (const auto& [slope, right] : {std::pair(-100.0, first), std::pair(100.0, last)}) {
    const auto model = make_alphabetical(vocabulary.size(), slope);
    const Recall recall = measure_recall(*model, vocabulary, stories, start, count);
    EXPECT_EQ(recall.asked, count);
    EXPECT_EQ(recall.right, right);
    EXPECT_EQ(recall.chance, 0.125);
    EXPECT_GT(right, 0);
  }
}

TEST(MeasureRecall, AsksNothingBehindTheEnd) {
  const Stories stories = make_stories({.bytes = 5'000});
  const Vocabulary vocabulary(stories.text);
  EXPECT_EQ(measure_recall(*make_alphabetical(vocabulary.size(), 1), vocabulary, stories,
                           static_cast<int64_t>(stories.text.size()))
                .asked,
            0);
}

TEST(MeasureRecall, IsReportedInPercent) {
  EXPECT_EQ(to_string(Recall{.right = 82, .asked = 200, .chance = 0.125}),
            "recall: 41 % of 200 answers right (chance 12.5 %)");
}

}  // namespace
}  // namespace carousel::examples
