#include "common/ngram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/text.h"

namespace carousel::examples {
namespace {

TEST(Ngrams, LossesAreThoseOfExactFractions) {
  std::ifstream file(std::string(CAROUSEL_SOURCE) + "/tests/golden/ngrams.json");
  const auto golden = nlohmann::json::parse(file);
  const std::string train = golden["train"], validation = golden["validation"];
  const Vocabulary vocabulary(train + validation);
  const Ngrams counts(vocabulary.encode(train), vocabulary.size(), 5);
  const std::vector<double> losses = counts.losses(vocabulary.encode(validation));
  ASSERT_EQ(losses.size(), 5U);
  for (size_t n = 0; n < losses.size(); ++n) {
    EXPECT_NEAR(losses[n], golden["losses"][n], 1e-13) << n;  // sums of 33 logarithms
  }
}

TEST(Ngrams, ProbabilitiesAddUpToOneAfterAnyContext) {
  const Tensor tokens = Tensor::from(std::vector<int64_t>{0, 1, 2, 0, 1, 3, 0, 1, 2, 2, 1});
  const Ngrams counts(tokens, 6, 3);
  for (const std::vector<int64_t>& context : {std::vector<int64_t>{}, {0}, {0, 1}, {5, 1}, {4, 5}, {3, 3, 2, 2}}) {
    std::vector<double> sums(3);
    for (int64_t token = 0; token < 6; ++token) {
      const std::vector<double> p = counts.probabilities(context, token);
      for (size_t n = 0; n < 3; ++n) {
        EXPECT_GT(p[n], 0);
        sums[n] += p[n];
      }
    }
    for (const double sum : sums) EXPECT_NEAR(sum, 1, 1e-15);  // of six doubles below 1
  }
}

TEST(Ngrams, OneGramByHand) {
  const Ngrams counts(Tensor::from(std::vector<int64_t>{0, 0, 1, 0}), 3, 1);
  // 4 tokens of 2 kinds: (count + 2 / 3) / (4 + 2).
  EXPECT_NEAR(counts.probabilities({}, 0).front(), (3 + 2.0 / 3) / 6, 1e-16);
  EXPECT_NEAR(counts.probabilities({}, 2).front(), (2.0 / 3) / 6, 1e-16);
}

TEST(Ngrams, OrderFollowsFromTheVocabulary) {
  const Tensor tokens = Tensor::from(std::vector<int64_t>{0, 1, 2});
  EXPECT_EQ(Ngrams(tokens, 4096, 5).order(), 5);
  EXPECT_EQ(Ngrams(tokens, 4097, 5).order(), 4);
  EXPECT_EQ(Ngrams(tokens, 65536, 5).order(), 4);
  EXPECT_EQ(Ngrams(tokens, 65536, 5).losses(tokens).size(), 4U);
  EXPECT_EQ(Ngrams(tokens, 3, 5).losses(tokens).size(), 5U) << "more than there are tokens";
  EXPECT_THROW(Ngrams(tokens, 2, 5), IndexError);
  EXPECT_THROW(Ngrams(tokens, 3, 0), ValueError);
}

}  // namespace
}  // namespace carousel::examples
