#include <carousel/nn/evaluate.h>
#include <carousel/nn/generate.h>
#include <carousel/nn/mamba.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/windows.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "../tensor/restore_threads.h"

/// What a training loop of a model, an optimiser and windows must not do.
namespace carousel {
namespace {

// HD-15: LSTM of 64, dropout 0.2, seed 123, 200 updates, validated every so many (0: never).
class Loop {
 public:
  std::vector<double> losses(int64_t validate_every) {
    std::vector<double> all;
    State state;
    for (int64_t step = 0; step < 200; ++step) {
      const Window window = windows_.next(rng_);
      if (window.starts) state = model_.initial_state(4);
      const LossResult result = model_.loss(window.inputs, window.targets, state, {.dropout_key = rng_.next_u64()});
      optimizer_.zero_grad();
      result.loss.backward();
      optimizer_.step(1e-3, {.clip_norm = 1});
      state = model_.carry(result.state);
      all.push_back(result.loss.value().item());
      if (validate_every > 0 && (step + 1) % validate_every == 0) validations_.push_back(evaluate(model_, held_out_));
    }
    return all;
  }
  std::vector<int64_t> sample(uint64_t seed) {
    Rng rng(seed);
    return generate(model_, std::vector<int64_t>{0}, {.length = 200}, rng);
  }
  const std::vector<double>& validations() const { return validations_; }

 private:
  Rng rng_{123};
  CharacterModel model_{
      {.model = "lstm", .vocabulary_size = 9, .embedding_size = 16, .hidden_size = 64, .layers = 2, .dropout = 0.2},
      layer_kind("lstm").default_config(),
      rng_};
  AdamW optimizer_{model_.parameters(), {}};
  TrainingWindows windows_{Rng(1).integers({2000}, 0, 9), 4, 10, WindowOrder::contiguous};
  Tensor held_out_ = Rng(2).integers({300}, 0, 9);
  std::vector<double> validations_;
};

TEST(TrainingLoop, ValidatingChangesNoLossAndIsWithoutDropout) {  // HD-15
  const test::RestoreThreads restore;
  set_threads(1);
  Loop never, seldom, often;
  const std::vector<double> expected = never.losses(0);
  EXPECT_EQ(seldom.losses(100), expected);
  EXPECT_EQ(often.losses(10), expected);
  ASSERT_EQ(often.validations().size(), 20U);
  EXPECT_EQ(often.validations()[9], seldom.validations()[0]);
  EXPECT_EQ(often.validations()[19], seldom.validations()[1]);
}

TEST(TrainingLoop, ASampleDependsOnItsSeedAlone) {  // HD-15
  Loop loop;
  loop.losses(0);
  const std::vector<int64_t> five = loop.sample(5);
  EXPECT_EQ(five.size(), 200U);
  EXPECT_EQ(loop.sample(5), five);
  EXPECT_NE(loop.sample(6), five);
}

// Whether decay may reach a parameter, by what its name says it is.
bool is_matrix(const std::string& name) {
  const auto ends = [&name](const char* end) { return name.ends_with(end); };
  return (ends("weight") || ends("weight_ih") || ends("weight_hh")) && name.find("norm") == std::string::npos &&
         name.find("ln_") == std::string::npos;
}

TEST(TrainingLoop, DecayReachesTheMatricesOfEveryKindAndNothingElse) {  // HD-18
  for (const std::string& kind : layer_kind_names()) {
    SCOPED_TRACE(kind);
    Rng rng(1);
    const CharacterModel model(
        {.model = kind, .vocabulary_size = 9, .embedding_size = 8, .hidden_size = 8, .context = 6},
        layer_kind(kind).default_config(), rng);
    const std::vector<NamedParameter> parameters = model.parameters();
    AdamW optimizer(parameters, {.weight_decay = 0.1});
    std::vector<Tensor> before;
    for (const NamedParameter& parameter : parameters) {
      Variable(parameter.variable).set_grad(zeros_like(parameter.variable.value()));
      before.push_back(parameter.variable.value().clone());
    }
    optimizer.step(0.01);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, variable, decays] = parameters[i];
      if (is_matrix(name)) {
        EXPECT_TRUE(all_close(variable.value(), before[i] * 0.999, 1e-6, 0)) << name;
      } else {
        EXPECT_TRUE(identical(variable.value(), before[i])) << name;
      }
    }
    ASSERT_EQ(optimizer.groups().size(), 2U);
    std::vector<std::string> listed, all;
    for (const ParameterGroup& group : optimizer.groups()) {
      for (const NamedParameter& parameter : group.parameters) listed.push_back(parameter.name);
    }
    for (const NamedParameter& parameter : parameters) all.push_back(parameter.name);
    std::sort(listed.begin(), listed.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(listed, all) << "each is in exactly one group";
  }
}

}  // namespace
}  // namespace carousel
