#include <carousel/nn/character_model.h>
#include <carousel/nn/functional.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/reduce.h>

#include <gtest/gtest.h>

namespace carousel {
namespace {

// The lines of the README, which a test keeps the same.
TEST(LookingAtGradients, ShowsEveryStep) {
  Rng rng(1);
  const CharacterModel model({.vocabulary_size = 10, .embedding_size = 8, .hidden_size = 8},
                             layer_kind("rnn").default_config(), rng);
  const Tensor inputs = rng.integers({2, 64}, 0, 10), targets = rng.integers({2, 64}, 0, 10);
  std::vector<double> norms;
  // README begins
  SequenceOptions options;
  options.visitor = [&](const BackwardView& view) {   // a block of steps at a time, from the last to the first
    const Tensor& dh = view.gradient.front().second;  // d loss / d h_t of these steps: [steps, B, H]
    for (int64_t t = dh.size(0) - 1; t >= 0; --t) norms.push_back(sum(square(dh.select(0, t))).item());
  };
  ModelResult result = model.forward(inputs, model.initial_state(2), options);
  result.logits.retain_grad();  // any intermediate keeps its gradient when asked
  cross_entropy(result.logits, targets).backward();
  const Tensor dlogits = result.logits.grad();
  // README ends
  EXPECT_EQ(norms.size(), 64u);
  EXPECT_EQ(dlogits.shape(), (Shape{2, 64, 10}));
  EXPECT_GT(norms.back(), 0);
}

}  // namespace
}  // namespace carousel
