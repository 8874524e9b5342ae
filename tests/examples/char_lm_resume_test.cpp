// A run that ends and goes on is the run that never ended: the same bits, the same log.
#include <carousel/nn/registry.h>
#include <carousel/optim/make_optimizer.h>

#include <signal.h>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class Resumed : public CharLm {
 protected:
  // The log without what depends on the clock and the process.
  static std::vector<json> told(const std::string& folder) {
    std::vector<json> records;
    std::ifstream file(folder + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      json record = json::parse(line);
      record.erase("tokens_per_s");
      record.erase("peak_rss_mib");
      records.push_back(record);
    }
    return records;
  }
  json info_of(const std::string& folder) { return json::parse(run({"info", folder, "--json"}).out); }

  // Trains 30 steps at once, and 13 + 17.
  void expect_same_run(Arguments options) {
    options.insert(options.end(), {"--steps", "30", "--eval-interval", "10", "--log-interval", "4", "--threads", "1"});
    const std::string whole = folder_.path("whole");
    out_ = whole;
    ASSERT_EQ(train(text_, options).exit_code, 0);
    out_ = folder_.path("parts");
    options.insert(options.end(), {"--stop-after", "13"});
    ASSERT_EQ(train(text_, options).exit_code, 0);
    EXPECT_NE(info_of(out_)["state_sha256"], info_of(whole)["state_sha256"]);
    const ProgramResult result = run({"train", "--resume", out_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(info_of(out_)["step"], 30);
    EXPECT_EQ(info_of(out_)["state_sha256"], info_of(whole)["state_sha256"]);
    EXPECT_EQ(told(out_), told(whole));
    std::filesystem::remove_all(whole);
    std::filesystem::remove_all(out_);
  }
};

TEST_F(Resumed, IsTheSameRunForEveryKindOfModel) {
  for (const LayerKind& kind : layer_kinds()) {
    SCOPED_TRACE(kind.name);
    expect_same_run({"--model", kind.name, "--layers", "2", "--dropout", "0.2", "--embedding", "16",
                     "--gradient-accumulation-steps", "2", "--grad-clip", "0.5"});
  }
}

TEST_F(Resumed, IsTheSameRunForEveryOptimizer) {
  for (const std::string& name : optimizer_names()) {
    SCOPED_TRACE(name);
    expect_same_run({"--optimizer", name, "--model", "lstm", "--dropout", "0.2", "--momentum", "0.5"});
  }
}

TEST_F(Resumed, IsTheSameRunForEverySchedule) {
  for (const std::string schedule : {"constant", "step", "exponential", "cosine"}) {
    SCOPED_TRACE(schedule);
    expect_same_run({"--schedule", schedule, "--lr-decay-every", "9", "--lr-decay-factor", "0.5"});
  }
}

TEST_F(Resumed, IsTheSameRunWithRandomWindows) { expect_same_run({"--windows", "random", "--dropout", "0.2"}); }

TEST_F(Resumed, ValidatingAndLoggingMoreOftenChangesNothing) {  // HD-15
  const Arguments options = {"--dropout", "0.2", "--steps", "40"};
  std::vector<std::string> digests;
  for (const std::string interval : {"5", "20", "1000"}) {
    Arguments more = options;
    more.insert(more.end(), {"--eval-interval", interval, "--log-interval", interval == "5" ? "1" : "7"});
    ASSERT_EQ(train(text_, more).exit_code, 0);
    digests.push_back(info()["state_sha256"]);
    ASSERT_EQ(run({"sample", out_, "--length", "50"}).exit_code, 0);
    EXPECT_EQ(info()["state_sha256"], digests.front());
  }
  ASSERT_EQ(train(text_, {"--dropout", "0.2", "--steps", "40", "--seed", "2"}).exit_code, 0);
  EXPECT_NE(info()["state_sha256"], digests.front());
}

TEST_F(Resumed, TakesTheSameTextAndRefusesAnother) {
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  const std::string other = write("other.txt", repeated("the mat sat on the cat and hat was that\n", 100));
  const ProgramResult refused = run({"train", "--resume", out_, "--text", other});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("[--resume] must go on with the text it began with: " + other), std::string::npos)
      << refused.err;
  EXPECT_EQ(info()["step"], 5);
  EXPECT_EQ(run({"train", "--resume", out_, "--text", text_, "--stop-after", "7"}).exit_code, 0);
  EXPECT_EQ(run({"train", "--resume", out_, "--text", other, "--force", "--stop-after", "9"}).exit_code, 0);
  EXPECT_EQ(info()["step"], 9);
}

TEST_F(Resumed, KeepsWhatDecidesItsNumbers) {
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  ProgramResult result = run({"train", "--resume", out_, "--lr", "0.1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "char_lm: [--lr] is 0.004 in " + out_ + ", and a resumed run keeps it: got 0.1\n");
  result = run({"train", "--resume", out_, "--preset", "shakespeare-fast"});
  EXPECT_EQ(result.err, "char_lm: [--preset] has no meaning with --resume\n");
  result = run({"train", "--resume", folder_.path("nosuch")});
  EXPECT_EQ(result.err, "char_lm: [--resume] no such folder: " + folder_.path("nosuch") + "\n");
  result = run({"train", "--resume", out_, "--lr", "4e-3", "--rnn_size", "16", "--steps", "25"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(info()["step"], 25) << "a run may be made longer";
  EXPECT_EQ(info()["lr_decay_steps"], 20) << "its schedule stays";
}

TEST_F(Resumed, GoesOnFromTheNewestCheckpointThatCanBeRead) {
  ASSERT_EQ(train(text_, {"--checkpoint-every", "5", "--keep-last", "2"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(out_ + "/step-000000000010.carousel"));
  ASSERT_TRUE(std::filesystem::exists(out_ + "/step-000000000015.carousel"));
  const json whole = info();
  const std::vector<json> log_before = told(out_);
  std::filesystem::remove(out_ + "/step-000000000020.carousel");
  std::filesystem::resize_file(out_ + "/checkpoint.carousel", 5000);
  const ProgramResult result = run({"train", "--resume", out_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("checkpoint.carousel is cut off"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("going on from " + out_ + "/step-000000000015.carousel"), std::string::npos) << result.err;
  EXPECT_EQ(info()["state_sha256"], whole["state_sha256"]);
  EXPECT_EQ(told(out_), log_before);
  for (const char* const name : {"checkpoint", "step-000000000015", "step-000000000020", "best"}) {
    std::filesystem::remove(out_ + "/" + name + ".carousel");
  }
  EXPECT_NE(run({"train", "--resume", out_}).err.find("no checkpoint that can be read in " + out_), std::string::npos);
}

TEST_F(Resumed, CutsFromTheLogWhatItsCheckpointDoesNotKnow) {
  ASSERT_EQ(train(text_, {"--steps", "30", "--eval-interval", "10", "--log-interval", "4"}).exit_code, 0);
  const std::vector<json> whole = told(out_);
  ASSERT_EQ(
      train(text_, {"--steps", "30", "--eval-interval", "10", "--log-interval", "4", "--stop-after", "15"}).exit_code,
      0);
  std::ofstream(out_ + "/log.jsonl", std::ios::app) << "{\"step\": 16}\n{\"step\": 20, \"train";  // as after a kill
  ASSERT_EQ(run({"train", "--resume", out_}).exit_code, 0);
  EXPECT_EQ(told(out_), whole);
}

// How runs end

TEST_F(Resumed, EndsAtTheLimitsItIsGiven) {
  ProgramResult result = train(text_, {"--token-budget", "0.5k"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(info()["step"], 8) << "64 tokens a step";
  EXPECT_NE(result.out.find("stopped by --token-budget after step 8;"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("char_lm train --resume " + out_ + "\n"), std::string::npos) << result.out;
  result = train(text_, {"--time-limit", "0.2s", "--steps", "1000000000"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("stopped by --time-limit after step "), std::string::npos) << result.out;
  result = train(text_, {"--lr", "0", "--min-lr", "0", "--steps", "100", "--eval-interval", "2", "--early-stop", "3"});
  EXPECT_NE(result.out.find("stopped by --early-stop after step 8;"), std::string::npos)
      << "no loss was better than the first, at step 2" << result.out;
  for (const auto& [option, value] : {std::pair("--time-limit", "5x"), std::pair("--time-limit", "-1s"),
                                      std::pair("--token-budget", "0.5"), std::pair("--token-budget", "many")}) {
    result = train(text_, {option, value});
    EXPECT_EQ(result.exit_code, 2) << option << value;
    EXPECT_NE(result.err.find(std::string("[") + option + "] must be a "), std::string::npos) << result.err;
  }
}

TEST_F(Resumed, KeepsTheBestCheckpoint) {
  ASSERT_EQ(train(text_, {"--steps", "60", "--eval-interval", "5"}).exit_code, 0);
  double best = 1e9;
  int64_t step = 0;
  for (const json& record : log()) {
    if (!record.contains("val_loss") || record["val_loss"] >= best) continue;
    best = record["val_loss"];
    step = record["step"];
  }
  EXPECT_EQ(info_of(out_ + "/best.carousel")["step"], step);
}

TEST_F(Resumed, TwoRunsDoNotShareAFolder) {
  const ProgramResult first =
      run_built("char_lm", {"train", "--text", text_, "--out", out_, "--steps", "100000000"}, [this](int pid) {
        for (int i = 0; i < 500 && !std::filesystem::exists(out_ + "/log.jsonl"); ++i) usleep(10000);
        const ProgramResult second = run({"train", "--resume", out_});
        EXPECT_EQ(second.exit_code, 1);
        EXPECT_NE(second.err.find("another process is writing " + out_ + "/log.jsonl"), std::string::npos)
            << second.err;
        kill(pid, SIGTERM);
      });
  EXPECT_EQ(first.exit_code, 143) << first.err;
}

TEST_F(Resumed, ASaveThatFailsLeavesTheOldCheckpoint) {  // HD-30
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  const std::string before = bytes_of(out_ + "/checkpoint.carousel");
  std::filesystem::create_directory(out_ + "/checkpoint.carousel.tmp");  // nothing can be written there
  ProgramResult result = run({"train", "--resume", out_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("[archive] cannot write " + out_ + "/checkpoint.carousel.tmp: "), std::string::npos)
      << result.err;
  EXPECT_EQ(bytes_of(out_ + "/checkpoint.carousel"), before);
  result = run({"train", "--resume", out_, "--on-save-error", "continue"});
  EXPECT_EQ(result.exit_code, 1) << "no success is told of a run that was not saved";
  EXPECT_NE(result.err.find("note: step 20 could not be saved, training goes on: "), std::string::npos) << result.err;
  EXPECT_EQ(bytes_of(out_ + "/checkpoint.carousel"), before);
  EXPECT_EQ(log().back()["step"], 20);
}

TEST_F(Resumed, ASignalEndsAValidation) {  // HD-39
  const std::string text = write("long.txt", repeated("the cat sat on the mat and that was that\n", 20000));
  const Arguments slow = {"train", "--text",         text,  "--out",        out_, "--split",
                          "0.01",  "--rnn_size",     "512", "--steps",      "5",  "--eval-interval",
                          "2",     "--log-interval", "1",   "--seq-length", "16", "--batch-size",
                          "4",     "--threads",      "1"};  // seconds for a validation
  const auto begin = std::chrono::steady_clock::now();
  const ProgramResult result = run_built("char_lm", slow, [this](int pid) {
    for (int i = 0; i < 3000 && log().size() < 1; ++i) usleep(10000);
    usleep(200000);  // into the validation after step 2
    kill(pid, SIGINT);
  });
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(info()["step"], 2);
  EXPECT_EQ(log().size(), 1) << "the record of step 2 waits for the validation";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace carousel::examples
