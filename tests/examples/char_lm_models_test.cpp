#include <carousel/nn/archive.h>

#include "char_lm_fixture.h"
#include "common/presets.h"

/// char_lm with every kind of model.
namespace carousel::examples {
namespace {

class CharLmModels : public CharLm, public ::testing::WithParamInterface<std::string> {};

TEST_P(CharLmModels, LearnsSamplesAndIsMeasured) {
  const ProgramResult trained =
      train(text_, {"--model", GetParam(), "--embedding", "16", "--steps", "60", "--lr", "1e-2"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_LT(log().back()["val_loss"].get<double>(), 2.4) << "13 symbols, ln 13 = 2.56";
  const json losses = json::parse(run({"eval", out_, "--json"}).out);
  EXPECT_NEAR(losses["validation_nats"].get<double>(), log().back()["val_loss"].get<double>(), 1e-6);
  const ProgramResult sampled = run({"sample", out_, "--length", "40", "--prompt", "the cat sat on the mat"});
  EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
  const json told = info();
  EXPECT_EQ(told["model"], GetParam());
  for (const char* name : {"state_numbers_after_1", "state_numbers_after_100000", "multiply_adds_after_1024"}) {
    EXPECT_GT(told[name].get<int64_t>(), 0) << name;
  }
  const ProgramResult again = run({"train", "--init-from", out_, "--steps", "2", "--out", folder_.path("second")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_P(CharLmModels, TheSameSeedGivesTheSameNumbers) {
  std::vector<double> losses;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(train(text_, {"--model", GetParam(), "--embedding", "16", "--steps", "10", "--dropout", "0.2"}).exit_code,
              0);
    losses.push_back(log().back()["train_loss"].get<double>());
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST_P(CharLmModels, RecomputationGivesTheSameNumbers) {
  std::vector<double> losses;
  for (const bool recompute : {false, true}) {
    Arguments options = {"--model", GetParam(), "--embedding", "16", "--layers", "3", "--steps", "10"};
    options.insert(options.end(), {"--dropout", "0.2"});
    if (recompute) options.emplace_back("--recompute");
    ASSERT_EQ(train(text_, options).exit_code, 0);
    EXPECT_EQ(info()["recompute"], recompute);
    losses.push_back(log().back()["train_loss"].get<double>());
  }
  EXPECT_EQ(losses[0], losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CharLmModels, ::testing::Values("rnn", "lstm", "gru", "ssm", "gpt", "decay"),
                         [](const ::testing::TestParamInfo<std::string>& kind) { return kind.param; });

TEST_F(CharLm, EveryPresetIsARunOfItsOwnWhoseSettingsCanBeChanged) {
  const std::string help = run({"train", "--help"}).out;
  for (const Preset& preset : presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_NE(help.find(preset.name), std::string::npos);
    const ProgramResult result = run({"train", "--preset", preset.name, "--text", text_, "--out", out_, "--overwrite",
                                      "--steps", "1", "--seq-length", "7"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json told = info(), wanted = json::parse(preset.options);
    EXPECT_EQ(told["model"], preset.model);
    EXPECT_EQ(told["steps"], 1);
    EXPECT_EQ(told["seq_length"], 7);
    for (const auto& [name, value] : wanted.items()) {
      if (name == "steps" || name == "seq_length") continue;
      EXPECT_EQ(told[name], value) << name;
    }
  }
}

TEST_F(CharLm, APresetIsForOneKindOfModel) {
  const Preset& preset = presets().front();
  const ProgramResult result = run({"train", "--preset", preset.name, "--model", "decay", "--out", out_});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("[--preset] " + preset.name + " is for --model " + preset.model + ": got decay"),
            std::string::npos)
      << result.err;
  const ProgramResult unknown = run({"train", "--preset", preset.name + "r", "--out", out_});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean " + preset.name), std::string::npos) << unknown.err;
}

TEST_F(CharLm, GptHasOneWidthAndAContextAsLongAsItsWindows) {
  const ProgramResult result =
      run({"train", "--text", text_, "--out", out_, "--model", "gpt", "--n_embd", "16", "--n_head", "2", "--n_layer",
           "2", "--block_size", "12", "--batch_size", "4", "--max_iters", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json told = info();
  EXPECT_EQ(told["embedding_size"], 16);
  EXPECT_EQ(told["hidden_size"], 16);
  EXPECT_EQ(told["heads"], 2);
  EXPECT_EQ(told["context"], 12);
  EXPECT_EQ(told["windows"], "random");
  EXPECT_EQ(told["state_numbers_after_1"], 2 * 2 * 16);
  EXPECT_EQ(told["state_numbers_after_100"], 12 * 2 * 2 * 16) << "no more than the context";
  EXPECT_NE(run({"info", out_}).out.find("tokens read"), std::string::npos);
}

TEST_F(CharLm, GptRefusesWhatDoesNotGoTogether) {
  const auto refused = [this](Arguments more) {
    more.insert(more.begin(), {"train", "--text", text_, "--out", out_, "--model", "gpt"});
    const ProgramResult result = run(more);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(out_));
    return result.err;
  };
  EXPECT_NE(refused({"--seq-length", "20", "--context", "10"}).find("must not exceed --context: got 20 and 10"),
            std::string::npos);
  EXPECT_NE(refused({"--hidden", "16", "--embedding", "8"}).find("must be one: got 8 and 16"), std::string::npos);
  EXPECT_NE(refused({"--n_embd", "16", "--heads", "3"}).find("heads must divide the size: got 3 and 16"),
            std::string::npos);
}

TEST_F(CharLm, RefusesACheckpointWhosePartsAreOfTwoKinds) {
  ASSERT_EQ(train(text_, {"--model", "lstm"}).exit_code, 0);
  Archive archive = load_archive(out_ + "/checkpoint.carousel");
  json options = json::parse(archive.texts["training/options"]);
  options["model"] = "rnn";
  archive.texts["training/options"] = options.dump();
  save_archive(archive, folder_.path("mixed.carousel"));
  const ProgramResult result = run({"info", folder_.path("mixed.carousel")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("mixed.carousel"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("options of training"), std::string::npos) << result.err;
}

TEST_F(CharLm, WeightsThatGiveNoNumbersDoNotReplaceThoseThatDo) {
  const ProgramResult result = train(text_, {"--model", "ssm", "--embedding", "16", "--lr", "100", "--min-lr", "100",
                                             "--grad-clip", "0", "--eval-interval", "1", "--steps", "50"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("finite"), std::string::npos) << result.err;
  const ProgramResult sampled = run({"sample", out_, "--length", "20"});
  EXPECT_EQ(sampled.exit_code, 0) << sampled.err;
}

TEST_F(CharLm, HeadsAndContextAreNoOptionsOfARecurrentNetwork) {
  EXPECT_NE(run({"train", "--text", text_, "--out", out_, "--n_head", "4"}).err.find("is an option of --model gpt"),
            std::string::npos);
  EXPECT_EQ(run({"train", "--text", text_, "--out", out_, "--context", "64"}).exit_code, 2);
}

}  // namespace
}  // namespace carousel::examples
