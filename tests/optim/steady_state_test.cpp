#include <carousel/nn/character_model.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>
#include <carousel/tensor/random.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace carousel {
namespace {

int64_t resident_bytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A training loop as a user writes it: carried state, clipping, AdamW, now and then an evaluation.
class Loop {
 public:
  Loop()
      : rng_(1),
        model_({.vocabulary_size = 20, .embedding_size = 16, .hidden_size = 16, .layers = 2, .dropout = 0.1},
               layer_kind("rnn").default_config(), rng_),
        optimizer_(model_.parameters(), {}),
        state_(model_.initial_state(4)) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const Tensor tokens = rng_.integers({4, 9}, 0, 20);
      const LossResult result =
          model_.loss(tokens.slice(1, {0, -1}), tokens.slice(1, {1}), state_, {.dropout_key = rng_.next_u64()});
      optimizer_.zero_grad();
      result.loss.backward();
      clip_grad_norm(model_.parameters(), 1.0);
      optimizer_.step(1e-3);
      state_ = result.state.detach();
      if (i % 10 == 0) evaluate(tokens);
    }
  }

 private:
  void evaluate(const Tensor& tokens) {
    const NoGrad scope;
    model_.eval();
    model_.forward(tokens, model_.initial_state(4));
    model_.train();
  }

  Rng rng_;
  CharacterModel model_;
  AdamW optimizer_;
  State state_;
};

TEST(SteadyState, TenThousandTrainingStepsNeitherGrowNorAllocate) {
  Loop loop;
  loop.run(100);
  [[maybe_unused]] const int64_t resident = resident_bytes();
  const StorageStats before = storage_stats();
  loop.run(10'000);
  const StorageStats after = storage_stats();
  EXPECT_EQ(live_nodes(), 0);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
#if !defined(CAROUSEL_SANITIZED)  // a sanitizer keeps books of its own, and has the cache step aside
  EXPECT_EQ(after.fresh, before.fresh) << "the storage cache was bypassed";
  EXPECT_LE(resident_bytes() - resident, 1 << 20);
#endif
}

}  // namespace
}  // namespace carousel
