#include <carousel/nn/character_model.h>
#include <carousel/nn/registry.h>
#include <carousel/optim/adam.h>
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

struct Sizes {
  int64_t batch, steps, width;
};

// A training loop as a user writes it: carried state, clipping, AdamW, now and then an evaluation.
class Loop {
 public:
  Loop(const std::string& kind, const Sizes& sizes, bool recompute = false)
      : sizes_(sizes),
        recompute_(recompute),
        rng_(1),
        model_({.model = kind,
                .vocabulary_size = 20,
                .embedding_size = sizes.width,
                .hidden_size = sizes.width,
                .layers = 2,
                .dropout = 0.1,
                .context = sizes.steps},
               layer_kind(kind).default_config(), rng_),
        optimizer_(model_.parameters(), {}),
        state_(model_.initial_state(sizes.batch)) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const Tensor tokens = rng_.integers({sizes_.batch, sizes_.steps + 1}, 0, 20);
      const LossResult result = model_.loss(tokens.slice(1, {0, -1}), tokens.slice(1, {1}), state_,
                                            {.dropout_key = rng_.next_u64(), .recompute = recompute_});
      optimizer_.zero_grad();
      result.loss.backward();
      optimizer_.step(1e-3, {.clip_norm = 1.0});
      state_ = model_.carry(result.state);
      if (i % 10 == 0) evaluate(tokens.slice(1, {1}));
    }
  }

 private:
  void evaluate(const Tensor& tokens) {
    const NoGrad scope;
    model_.eval();
    model_.forward(tokens, model_.initial_state(sizes_.batch));
    model_.train();
  }

  Sizes sizes_;
  bool recompute_;
  Rng rng_;
  CharacterModel model_;
  AdamW optimizer_;
  State state_;
};

void expect_no_growth(const StorageStats& before, const StorageStats& after) {
  EXPECT_EQ(live_nodes(), 0);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
#if !defined(CAROUSEL_SANITIZED)  // a sanitizer keeps books of its own, and has the cache step aside
  EXPECT_EQ(after.fresh, before.fresh) << "the storage cache was bypassed, or too small";
  EXPECT_EQ(after.cached_bytes, before.cached_bytes);
#endif
}

TEST(SteadyState, TenThousandTrainingStepsNeitherGrowNorAllocate) {
  Loop loop("rnn", {.batch = 4, .steps = 8, .width = 16});
  loop.run(100);
  [[maybe_unused]] const int64_t resident = resident_bytes();
  const StorageStats before = storage_stats();
  loop.run(10'000);
  expect_no_growth(before, storage_stats());
#if !defined(CAROUSEL_SANITIZED)
  EXPECT_LE(resident_bytes() - resident, 1 << 20);
#endif
}

class SteadyStateOfEachKind : public testing::TestWithParam<std::string> {};

TEST_P(SteadyStateOfEachKind, TwentyTrainingStepsAskForNoFreshMemory) {
  // Short steps, and ones long and wide enough for what kernels do block by block and with several threads.
  for (const Sizes& sizes : {Sizes{.batch = 3, .steps = 5, .width = 8}, Sizes{.batch = 4, .steps = 96, .width = 32}}) {
    for (const bool recompute : {false, true}) {
      Loop loop(GetParam(), sizes, recompute);
      loop.run(5);
      const StorageStats before = storage_stats();
      loop.run(20);
      expect_no_growth(before, storage_stats());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SteadyStateOfEachKind, testing::ValuesIn(layer_kind_names()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace carousel
