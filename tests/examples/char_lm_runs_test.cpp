// What happens to runs: where they start, what they must not destroy, how they are interrupted.
#include <carousel/tensor/runtime.h>

#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <iterator>
#include <thread>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

// Starting from weights

TEST_F(CharLm, StartsFromTheWeightsOfACheckpoint) {
  ASSERT_EQ(train(text_, {"--steps", "300"}).exit_code, 0);
  const double before = log().back()["val_loss"];
  const std::string first = out_;
  out_ = folder_.path("second");
  const ProgramResult result = run({"train", "--text", text_, "--out", out_, "--init-from", first, "--steps", "1",
                                    "--warmup", "0", "--lr", "0", "--batch-size", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(log().back()["val_loss"], before) << "weights and sizes come from the checkpoint";
  EXPECT_EQ(info()["hidden_size"], 16);
  EXPECT_EQ(info()["step"], 1) << "and nothing else";
}

TEST_F(CharLm, RefusesWeightsThatDoNotFit) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const ProgramResult sizes =
      run({"train", "--text", text_, "--init-from", out_, "--hidden", "17", "--out", folder_.path("second")});
  EXPECT_EQ(sizes.exit_code, 2);
  EXPECT_EQ(sizes.err, "char_lm: [--hidden] is 16 in " + out_ + ": sizes come from the checkpoint\n");
  const ProgramResult symbols = run({"train", "--text", write("other.txt", repeated("Z", 5000)), "--init-from", out_,
                                     "--out", folder_.path("second")});
  EXPECT_EQ(symbols.exit_code, 1);
  EXPECT_NE(symbols.err.find("U+005A 'Z' at position 0"), std::string::npos) << symbols.err;
}

TEST_F(CharLm, TakesTextAndTrainingFromTheCheckpointItStartsFrom) {
  ASSERT_EQ(train(text_, {"--lr", "0.002", "--windows", "random", "--layers", "2"}).exit_code, 0);
  const std::string first = out_;
  out_ = folder_.path("second");
  ProgramResult result = run({"train", "--init-from", first, "--out", out_, "--batch-size", "5", "--dropout", "0.1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("text: " + text_ + "\n"), std::string::npos) << result.out;
  json told = info();
  EXPECT_EQ(told["text"], text_);
  EXPECT_EQ(told["lr"], 0.002);
  EXPECT_EQ(told["min_lr"], 0.0001);
  EXPECT_EQ(told["steps"], 20);
  EXPECT_EQ(told["seq_length"], 16);
  EXPECT_EQ(told["windows"], "random");
  EXPECT_EQ(told["layers"], 2);
  EXPECT_EQ(told["batch_size"], 5) << "what was given holds";
  EXPECT_EQ(told["dropout"], 0.1);

  result = run({"train", "--init-from", first, "--out", out_, "--overwrite", "--lr", "4e-5", "--steps", "30"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  told = info();
  EXPECT_EQ(told["min_lr"], 4e-5 / 20) << "follows the rate that was given";
  EXPECT_EQ(told["warmup"], 3) << "follows the steps that were given";
}

TEST_F(CharLm, KnowsTheWordsOfNanoGptForStartingPoints) {
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  ProgramResult result = run({"train", "--init_from=resume", "--out_dir=" + out_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("going on after step 5\n"), std::string::npos) << result.out;
  EXPECT_EQ(info()["step"], 20);
  EXPECT_EQ(train(text_, {"--init-from", "nosuch"}).err, "char_lm: [--init-from] no checkpoint at nosuch\n");
  EXPECT_EQ(train(text_, {"--init-from=nosuch", "--help"}).exit_code, 0) << "help reads no checkpoint";
}

TEST_F(CharLm, UsesNoMoreThreadsThanCanRun) {
  const ProgramResult result = train(text_, {"--threads", "1024"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string available = std::to_string(available_threads());
  EXPECT_NE(result.err.find("note: 1024 threads were asked for; " + available + " can run"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("; " + available + " thread"), std::string::npos) << result.err;
  EXPECT_EQ(train(text_, {"--overwrite", "--threads", "1"}).err.find("note: 1 thread"), std::string::npos);
}

// Nothing is lost

TEST_F(CharLm, RefusesAFolderThatHoldsARun) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const json before = log();
  const ProgramResult result = run({"train", "--text", text_, "--out", out_, "--steps", "5"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "char_lm: [--out] " + out_ + " holds a run at step 20: name another folder, or give --overwrite\n");
  EXPECT_EQ(info()["steps"], 20);
  EXPECT_EQ(json(log()), before);
  EXPECT_EQ(train(text_, {"--overwrite", "--steps", "10"}).exit_code, 2) << "given twice";
  ASSERT_EQ(train(text_, {"--steps", "10"}).exit_code, 0);
  EXPECT_EQ(info()["steps"], 10);
}

TEST_F(CharLm, SaysWhenTheLogCannotBeWritten) {
  std::filesystem::create_directory(out_);
  std::filesystem::create_symlink("/dev/full", out_ + "/log.jsonl");
  const ProgramResult result = train(text_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("[log] cannot write " + out_ + "/log.jsonl: No space left on device\n"), std::string::npos)
      << result.err;
}

TEST_F(CharLm, SaysWhenItsOutputCannotBeWritten) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const std::string command = std::string(CAROUSEL_BIN) + "/char_lm info " + out_ + " 2>" + folder_.path("err");
  EXPECT_EQ(WEXITSTATUS(std::system((command + " >/dev/full").c_str())), 1);
  std::ifstream file(folder_.path("err"));
  const std::string errors(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(errors.find("char_lm: [output] cannot write: No space left on device\n"), std::string::npos) << errors;
}

TEST_F(CharLm, EndsQuietlyWhenItsReaderGoes) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const std::string sample = std::string(CAROUSEL_BIN) + "/char_lm sample " + out_ + " --length 1000000000";
  for (const std::string first : {"", "trap '' PIPE; "}) {  // some parents have their children ignore the signal
    std::string command = "(";
    command.append(first).append(sample).append(" 2>").append(folder_.path("err")).append(") | head -c 10 >/dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(folder_.path("err"));
    const std::string errors(std::istreambuf_iterator<char>(file), {});
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << "the header and no more: " << errors;
  }
}

// Signals

class Interrupted : public CharLm {
 protected:
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

  // A run that ends only when it is told to.
  ProgramResult run_long(const std::string& text, Arguments more, const std::function<void(int)>& meanwhile) {
    Arguments arguments = {"train",     "--text",          text,       "--out", out_, "--steps",
                           "100000000", "--eval-interval", "100000000"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_built("char_lm", arguments, meanwhile);
  }
  // The command that the last line ends with.
  static std::string continuation(const std::string& out) {
    const std::string before = "go on: ";
    const size_t at = out.find(before);
    return at == std::string::npos ? "" : out.substr(at + before.size(), out.find('\n', at) - at - before.size());
  }
  bool log_is_empty() const {
    std::error_code error;
    const auto size = std::filesystem::file_size(out_ + "/log.jsonl", error);
    return error || size == 0;
  }
};

TEST_F(Interrupted, SavesAWholeStepAndSaysHowToGoOn) {  // HD-39
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    const ProgramResult result = run_long(text_, {"--hidden", "16", "--batch-size", "4", "--seq-length", "16"},
                                          [this, number = signal](int pid) {
                                            for (int i = 0; i < 3000 && log_is_empty(); ++i) pause();
                                            kill(pid, number);
                                          });
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.out.find(std::string(CAROUSEL_BIN) + "/char_lm sample " + out_ + "\n"), std::string::npos)
        << result.out;
    EXPECT_EQ(continuation(result.out + "\n"), std::string(CAROUSEL_BIN) + "/char_lm train --resume " + out_);
    EXPECT_NE(result.out.find("checkpoint: " + out_ + "/checkpoint.carousel"), std::string::npos);
    EXPECT_GE(info()["step"], log().back()["step"]) << "the log has whole intervals only";
    EXPECT_GE(info()["step"], 100);
    EXPECT_EQ(run({"sample", out_}).exit_code, 0);
    std::filesystem::remove_all(out_);
  }
}

TEST_F(Interrupted, PrintsACommandThatGoesOn) {
  out_ = folder_.path("a run");  // a shell must not take this apart
  const ProgramResult result =
      run_long(text_, {"--hidden", "16", "--batch-size", "4", "--seq-length", "16"}, [this](int pid) {
        for (int i = 0; i < 3000 && log_is_empty(); ++i) pause();
        kill(pid, SIGINT);
      });
  const std::string command = continuation(result.out);
  ASSERT_NE(command, "") << result.out;
  const int64_t step = info()["step"];
  const std::string two_more = " --stop-after " + std::to_string(step + 2);
  ASSERT_EQ(std::system(("cd / && " + command + two_more + " >/dev/null 2>&1").c_str()), 0) << command;
  const json told = info();
  EXPECT_EQ(told["step"], step + 2);
  EXPECT_EQ(told["text"], text_);
  EXPECT_EQ(told["seq_length"], 16);
}

TEST_F(Interrupted, EndsAtOnceAtTheSecondSignalAndHarmsNoFile) {  // HD-39
  const std::string text = write("long.txt", repeated("abcdefgh", 4000));
  const Arguments half_a_second_a_step = {"--seq-length", "512", "--batch-size", "32", "--rnn_size", "1024"};
  const ProgramResult result = run_long(text, half_a_second_a_step, [this](int pid) {
    for (int i = 0; i < 3000 && !std::filesystem::exists(out_ + "/checkpoint.carousel"); ++i) pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // into the first step
    kill(pid, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(pid, SIGTERM);
  });
  EXPECT_EQ(result.exit_code, 143) << "the first signal alone would give 130";
  EXPECT_EQ(info()["step"], 0);
}

TEST_F(Interrupted, SamplingEndsWithWhatItHas) {  // HD-39
  ASSERT_EQ(train(text_).exit_code, 0);
  const ProgramResult result = run_built("char_lm", {"sample", out_, "--length", "1000000000"}, [](int pid) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(pid, SIGINT);
  });
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_FALSE(result.out.empty());
  EXPECT_EQ(result.out.back(), '\n');
}

}  // namespace
}  // namespace carousel::examples
