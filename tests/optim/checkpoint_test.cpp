#include "../examples/temporary_folder.h"
#include "../nn/expect_error.h"

#include <carousel/optim/adam.h>
#include <carousel/optim/checkpoint.h>
#include <carousel/optim/clip.h>
#include <carousel/optim/schedule.h>
#include <carousel/optim/windows.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

using test::expect_error;

CharacterModelConfig config() {
  return {.vocabulary_size = 9, .embedding_size = 4, .hidden_size = 8, .layers = 2, .dropout = 0.2};
}

// A training run as a program writes it: everything that HD-35 lists.
class Training {
 public:
  explicit Training(uint64_t seed)
      : init_(seed),
        model_(config(), layer_kind("rnn").default_config(), init_),
        optimizer_(model_.parameters(), {.weight_decay = 0.1}),
        windows_(Rng(3).integers({500}, 0, 9), 4, 10, WindowOrder::contiguous) {
    training_.rng = Rng(seed);
  }

  std::vector<double> train(int64_t until) {
    const WarmupCosine schedule{.peak = 1e-3, .end = 100};
    std::vector<double> losses;
    for (; training_.step < until; ++training_.step) {
      const Window window = windows_.next(training_.rng);
      const State state = window.starts ? model_.initial_state(4) : training_.carried;
      LossResult result = model_.loss(window.inputs, window.targets, state, {.dropout_key = training_.rng.next_u64()});
      optimizer_.zero_grad();
      result.loss.backward();
      clip_grad_norm(model_.parameters(), 1.0);
      optimizer_.step(schedule.rate(training_.step));
      training_.carried = result.state.detach();
      losses.push_back(result.loss.value().item());
    }
    return losses;
  }
  void save(const std::string& path) {
    training_.position = windows_.position();
    save_checkpoint(path, model_, "abcdefghi", optimizer_, training_);
  }
  void resume_from(const Archive& archive) {
    training_ = resume(archive, model_, optimizer_);
    windows_.seek(training_.position);
  }

  Rng init_;
  CharacterModel model_;
  AdamW optimizer_;
  TrainingWindows windows_;
  TrainingState training_{.options = R"({"lr":0.001})"};
};

TEST(Checkpoint, AResumedRunIsTheSameRunBitForBit) {  // HD-35
  const examples::TemporaryFolder folder;
  Training straight(1);
  const std::vector<double> whole = straight.train(100);

  Training first(1);
  std::vector<double> pieces = first.train(45);
  first.save(folder.path("x"));
  Training second(2);  // another seed: whatever is not restored would show
  second.resume_from(load_archive(folder.path("x")));
  EXPECT_EQ(second.training_.step, 45);
  EXPECT_EQ(second.training_.options, R"({"lr":0.001})");
  const std::vector<double> rest = second.train(100);
  pieces.insert(pieces.end(), rest.begin(), rest.end());
  EXPECT_EQ(pieces, whole);
  for (size_t i = 0; i < straight.model_.parameters().size(); ++i) {
    EXPECT_TRUE(
        identical(straight.model_.parameters()[i].variable.value(), second.model_.parameters()[i].variable.value()));
  }
}

TEST(Checkpoint, CanBeWrittenBeforeTheFirstStepAndLoadedForUse) {
  const examples::TemporaryFolder folder;
  Training run(1);
  run.save(folder.path("checkpoint.carousel"));
  const SavedModel loaded = load(folder.path(""));
  EXPECT_EQ(loaded.vocabulary, "abcdefghi");
  EXPECT_EQ(loaded.model->parameter_count(), run.model_.parameter_count());
  Training other(2);
  other.resume_from(load_archive(folder.path("checkpoint.carousel")));
  EXPECT_EQ(other.train(3), run.train(3));
}

TEST(Checkpoint, TellsHowFarTheRunIsWithoutModelOrOptimiser) {
  const examples::TemporaryFolder folder;
  Training run(1);
  run.train(7);
  run.save(folder.path("x"));
  const TrainingState training = training_state(load_archive(folder.path("x")));
  EXPECT_EQ(training.step, 7);
  EXPECT_EQ(training.position, 7);
  EXPECT_EQ(training.options, R"({"lr":0.001})");
  EXPECT_EQ(training.rng.counter(), run.training_.rng.counter());
  for (const auto& [name, value] : run.training_.carried.values()) {
    EXPECT_TRUE(identical(training.carried[name].value(), value.value().contiguous())) << name;
  }
}

TEST(Checkpoint, GroupsOfOnesOwnResumeToo) {
  const examples::TemporaryFolder folder;
  const auto make = [](const CharacterModel& model) {
    auto parameters = model.parameters();
    const NamedParameter last = parameters.back();
    parameters.pop_back();
    return AdamW({ParameterGroup{.parameters = {last}, .lr_scale = 0.5}, ParameterGroup{.parameters = parameters}}, {});
  };
  Training run(1);
  run.train(3);
  AdamW grouped = make(run.model_);
  grouped.step(1e-3);
  save_checkpoint(folder.path("x"), run.model_, "abcdefghi", grouped, run.training_);
  Training other(2);
  AdamW restored = make(other.model_);
  resume(load_archive(folder.path("x")), other.model_, restored);
  const auto expected = grouped.state(), got = restored.state();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i].second, expected[i].second)) << got[i].first;
}

TEST(Checkpoint, WhatDoesNotFitIsNamedAndChangesNothing) {
  const examples::TemporaryFolder folder;
  Training run(1);
  run.train(3);
  run.save(folder.path("x"));
  const Archive whole = load_archive(folder.path("x"));
  const auto refuse = [&](const Archive& archive, std::initializer_list<const char*> parts) {
    Training target(2);
    const Training same(2);
    expect_error<FormatError>([&] { target.resume_from(archive); }, parts);
    EXPECT_EQ(target.optimizer_.state()[2].second.item<int64_t>(), 0) << "updates of the first parameter";
    for (size_t i = 0; i < same.model_.parameters().size(); ++i) {
      EXPECT_TRUE(
          identical(target.model_.parameters()[i].variable.value(), same.model_.parameters()[i].variable.value()));
    }
  };
  Archive archive = whole;
  archive.tensors.erase("training/counters");
  refuse(archive, {folder.path("x").c_str(), "training/counters"});
  archive = whole;
  archive.tensors["training/counters"] = zeros({2}, DType::int64);
  refuse(archive, {folder.path("x").c_str(), "training/counters", "[2]"});
  archive = whole;
  archive.tensors.erase("optimizer/head.bias/m");
  refuse(archive, {folder.path("x").c_str(), "missing head.bias/m"});
  archive = whole;
  archive.tensors["model/head.bias"] = zeros({3});
  refuse(archive, {folder.path("x").c_str(), "mismatched head.bias (file float32 [3], here float32 [9])"});
}

}  // namespace
}  // namespace carousel
