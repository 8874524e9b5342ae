#include <cmath>

#include "char_lm_fixture.h"

/// What `char_lm eval` and `char_lm info` tell.
namespace carousel::examples {
namespace {

TEST_F(CharLm, EvalRepeatsTheLastValidation) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const json losses = json::parse(run({"eval", out_, "--json"}).out);
  EXPECT_EQ(losses["validation_nats"], log().back()["val_loss"]);
  EXPECT_EQ(losses["validation_characters"], 410);
  EXPECT_NEAR(losses["validation_bits"].get<double>(), losses["validation_nats"].get<double>() / 0.6931471805599453,
              1e-12);
  EXPECT_FALSE(losses.contains("test_nats"));
  const json whole =
      json::parse(run({"eval", out_ + "/checkpoint.carousel", "--text", text_, "--split", "0", "--json"}).out);
  EXPECT_EQ(whole["validation_characters"], 4100);
  const json three = json::parse(run({"eval", out_, "--split", "torch-rnn", "--json"}).out);
  EXPECT_EQ(three["test_characters"], 410);
}

TEST_F(CharLm, InfoTellsWhatACheckpointHolds) {
  ASSERT_EQ(train(text_, {"--layers", "2", "--dropout", "0.2"}).exit_code, 0);
  const json told = info();
  EXPECT_EQ(told["model"], "rnn");
  EXPECT_EQ(told["hidden_size"], 16);
  EXPECT_EQ(told["layers"], 2);
  EXPECT_EQ(told["dropout"], 0.2);
  EXPECT_EQ(told["step"], 20);
  EXPECT_EQ(told["vocabulary"], "\n acdehmnostw");
  EXPECT_EQ(told["vocabulary_size"], 13);
  EXPECT_EQ(told["state_numbers_after_1"], 32);
  EXPECT_EQ(told["state_numbers_after_100000"], 32);
  // Embedding, two layers with two biases each, head.
  EXPECT_EQ(told["parameters"], 13 * 8 + (16 * (8 + 16) + 32) + (16 * (16 + 16) + 32) + 13 * 16 + 13);
  EXPECT_NE(run({"info", out_}).out.find("hidden_size: 16\n"), std::string::npos);
}

TEST_F(CharLm, MeasuresRecallOfTheEmbeddedStories) {
  const ProgramResult result = run({"train", "--out", out_, "--steps", "2", "--hidden", "8", "--batch-size", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("text: stories (embedded)\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" % of 200 answers right (chance 12.5 %)\n2 steps in "), std::string::npos) << result.out;
  const json told = json::parse(run({"eval", out_, "--json"}).out);
  EXPECT_EQ(told["recall_asked"], 200);
  EXPECT_EQ(told["recall_chance"], 0.125);
  EXPECT_LT(told["recall"], 0.4) << "it has learnt nothing yet";
  EXPECT_FALSE(json::parse(run({"eval", out_, "--json", "--split", "1,0"}).out, nullptr, false).contains("recall"));
}

TEST_F(CharLm, InfoLeavesOutWhatIsEmpty) {
  ASSERT_EQ(train(text_).exit_code, 0);
  EXPECT_FALSE(info().contains("init_from"));
  EXPECT_EQ(run({"info", out_}).out.find("init_from"), std::string::npos);
}

}  // namespace
}  // namespace carousel::examples
