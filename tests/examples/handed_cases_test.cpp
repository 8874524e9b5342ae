// Faults that people met in other programs, tried against char_lm: trials of the handed cases, and what they led to.
// Those of texts, prompts and flags stand beside other tests of these.
#include <signal.h>
#include <sys/resource.h>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class Handed : public CharLm {
 protected:
  // The model of two cases: LSTM of 64, dropout 0.2 (two layers, since it stands between them), one thread.
  ProgramResult train_lstm(const Arguments& more, const std::function<void(int)>& meanwhile = {}) {
    Arguments arguments = {"train", "--text",         text_, "--out",        out_,  "--model",   "lstm", "--rnn_size",
                           "64",    "--layers",       "2",   "--dropout",    "0.2", "--threads", "1",    "--seq-length",
                           "16",    "--log-interval", "1",   "--batch-size", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_built("char_lm", arguments, meanwhile);
  }
  int64_t line_count() const {
    const std::string log = bytes_of(out_ + "/log.jsonl");
    return std::count(log.begin(), log.end(), '\n');
  }
  std::vector<double> numbers(const std::string& name, size_t from = 0) const {
    std::vector<double> result;
    for (const json& record : log()) result.push_back(record[name]);
    return {result.begin() + static_cast<std::ptrdiff_t>(from), result.end()};
  }
};

// The same numbers

TEST_F(Handed, AnLstmLearnsTheSameHoweverOftenItIsValidated) {  // HD-15
  std::vector<std::vector<double>> losses;
  for (const std::string interval : {"10", "100", "1000000"}) {
    ASSERT_EQ(train_lstm({"--seed", "123", "--steps", "200", "--eval-interval", interval, "--overwrite"}).exit_code, 0);
    losses.push_back(numbers("train_loss"));
  }
  ASSERT_EQ(losses[0].size(), 200U);
  EXPECT_EQ(losses[1], losses[0]);
  EXPECT_EQ(losses[2], losses[0]);
  const auto text = [this](const std::string& seed) {
    return run({"sample", out_, "--length", "200", "--seed", seed}).out;
  };
  EXPECT_EQ(text("5"), text("5"));
  EXPECT_NE(text("5"), text("6"));
}

TEST_F(Handed, ARunInTwoPartsIsTheWholeRun) {  // HD-35
  const Arguments options = {"--optimizer", "adamw", "--grad-clip", "1",   "--lr",     "1e-3",
                             "--min-lr",    "0",     "--steps",     "100", "--warmup", "0"};
  ASSERT_EQ(train_lstm(options).exit_code, 0);
  const std::vector<double> losses = numbers("train_loss", 45), rates = numbers("lr", 45);
  const std::string digest = info()["state_sha256"];
  out_ = folder_.path("parts");
  Arguments stopping = options;
  stopping.insert(stopping.end(), {"--stop-after", "45"});
  ASSERT_EQ(train_lstm(stopping).exit_code, 0);
  ASSERT_EQ(run({"train", "--resume", out_}).exit_code, 0);
  EXPECT_EQ(numbers("train_loss", 45), losses);
  EXPECT_EQ(numbers("lr", 45), rates);
  EXPECT_NEAR(rates.front(), 5.7822e-4, 5e-9);  // as many digits as the case gives
  EXPECT_EQ(info()["state_sha256"], digest);
}

TEST_F(Handed, ARecordThatWaitedForItsValidationKnowsItsStep) {
  // A checkpoint is written before its validation; a run that ended between the two makes up for that.
  ASSERT_EQ(train(text_, {"--keep-last", "1"}).exit_code, 0);
  const json whole = log().back();
  std::filesystem::rename(out_ + "/step-000000000020.carousel", checkpoint());
  ASSERT_EQ(run({"train", "--resume", out_}).exit_code, 0);
  ASSERT_EQ(log().size(), 1U);
  for (const char* const name : {"step", "tokens", "train_loss", "val_loss", "grad_norm", "lr"}) {
    EXPECT_EQ(log().back()[name], whole[name]) << name;
  }
}

// Saves that cannot be made

// The thread sanitizer keeps its books in files, which the limit cuts off: a program ends with SIGBUS as it starts.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAROUSEL_NEEDS_FILES 1
#endif
#endif

#ifndef CAROUSEL_NEEDS_FILES

// Files of the programs that run while it lives end at so many bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit tight{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Handed, AFullDiskKeepsTheOldCheckpointAndIsNoSuccess) {  // HD-30
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  const auto before = contents();
  const std::string reason = "[archive] cannot write " + checkpoint() + ".tmp: File too large";
  const FullDisk disk(4096);  // the checkpoint has more, all else less
  ProgramResult result = run({"train", "--resume", out_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(error_of(result), "char_lm: " + reason + "\n");
  EXPECT_TRUE(contents() == before);

  result = run({"train", "--resume", out_, "--on-save-error", "continue"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.err.find("note: step 20 could not be saved, training goes on: " + reason + "\n"), std::string::npos)
      << result.err;
  EXPECT_EQ(error_of(result), "char_lm: [train] step 20 could not be saved: " + checkpoint() + " holds step 5\n");
  ASSERT_FALSE(log().empty());
  EXPECT_EQ(log().back()["step"], 20) << "training went on";
  EXPECT_TRUE(bytes_of(checkpoint()) == before.at("checkpoint.carousel"));
  EXPECT_FALSE(std::filesystem::exists(checkpoint() + ".tmp"));

  result = run({"train", "--text", text_, "--out", folder_.path("fresh"), "--batch-size", "4"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(error_of(result).find("File too large"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("fresh/checkpoint.carousel")));
}

TEST_F(Handed, ALogThatCannotGrowHasWholeLines) {
  const Arguments options = {"--log-interval", "1", "--steps", "400", "--eval-interval", "300"};
  const FullDisk disk(40'000);  // the log would have some 70,000 bytes, a checkpoint has 15,000
  ProgramResult result = train(text_, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(error_of(result), "char_lm: [log] cannot write " + out_ + "/log.jsonl: File too large\n");
  const size_t lines = log().size();  // each of which is JSON
  EXPECT_GT(lines, 100U);

  Arguments more = options;
  more.insert(more.end(), {"--on-save-error", "continue"});
  result = train(text_, more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find(" could not be recorded, training goes on: [log] cannot write "), std::string::npos);
  EXPECT_EQ(info()["step"], 400);
  EXPECT_NEAR(static_cast<double>(log().size()), static_cast<double>(lines), 5) << "lines differ in length";
}

#endif  // CAROUSEL_NEEDS_FILES

TEST_F(Handed, ARunThatCannotBeWrittenToIsNotTouched) {  // HD-30, HD-40
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  const auto before = contents();
  for (const auto& [target, reason] :
       {std::pair(text_, "Not a directory"), std::pair(text_ + "/x", "Not a directory"),
        std::pair(std::string("/dev/full"), "Not a directory"), std::pair(std::string("/proc/x"), "No such file")}) {
    const ProgramResult result = run({"train", "--text", text_, "--out", target, "--batch-size", "4"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(error_of(result).find("[--out] cannot make the folder " + target + ": " + reason), std::string::npos)
        << result.err;
  }

  // Rights do not bind the superuser, who can have a read-only view of the folder instead.
  std::string shell = "chmod 555 " + out_ + " && chmod 444 " + out_ + "/* && ";
  if (geteuid() == 0) shell = "mount --bind " + out_ + " " + out_ + " && mount -o remount,bind,ro " + out_ + " && ";
  const auto code_of = [&](const std::string& arguments) {
    std::string command = shell + CAROUSEL_BIN + "/char_lm " + arguments + " 2>" + folder_.path("err") + " >/dev/null";
    if (geteuid() == 0) command = "unshare -m sh -c '" + command + "'";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  if (code_of("info " + out_) != 0) return;  // a superuser who may not mount, as in some containers
  for (const std::string& more : {"--resume " + out_, "--resume " + out_ + " --on-save-error continue",
                                  "--overwrite --out " + out_ + " --batch-size 4 --text " + text_}) {
    EXPECT_EQ(code_of("train " + more), 1) << more;
    const std::string errors = bytes_of(folder_.path("err"));
    EXPECT_NE(errors.find("char_lm: [log] cannot write " + out_ + "/log.jsonl: "), std::string::npos) << errors;
  }
  EXPECT_EQ(code_of("sample " + out_), 0);
  std::filesystem::permissions(out_, std::filesystem::perms::owner_all);
  EXPECT_TRUE(contents() == before);
}

// Runs that meet in a folder

TEST_F(Handed, ARunningRunIsNotOverwritten) {
  const ProgramResult first =
      run_built("char_lm", {"train", "--text", text_, "--out", out_, "--steps", "100000000"}, [this](int pid) {
        for (int i = 0; i < 1000 && !std::filesystem::exists(out_ + "/config.json"); ++i) usleep(10000);
        const std::string before = bytes_of(checkpoint());
        const ProgramResult second = train(text_, {"--model", "gru"});  // the fixture's --overwrite
        EXPECT_EQ(second.exit_code, 1);
        EXPECT_EQ(error_of(second),
                  "char_lm: [log] another process is writing " + out_ + "/log.jsonl: one run a folder\n");
        EXPECT_TRUE(bytes_of(checkpoint()) == before);
        kill(pid, SIGTERM);
      });
  EXPECT_EQ(first.exit_code, 143) << first.err;
  EXPECT_EQ(info()["model"], "rnn");
}

TEST_F(Handed, AnOverwrittenRunLeavesNoCheckpoint) {
  ASSERT_EQ(train(text_, {"--steps", "40", "--checkpoint-every", "10", "--keep-last", "2"}).exit_code, 0);
  const std::string named = write("run/step-good.carousel", bytes_of(checkpoint()));
  ASSERT_EQ(train(text_, {"--steps", "30", "--checkpoint-every", "10", "--keep-last", "2", "--stop-after", "20",
                          "--eval-interval", "1000"})
                .exit_code,
            0);
  const auto files = contents();
  EXPECT_EQ(files.count("step-000000000010.carousel"), 1U);
  EXPECT_EQ(files.count("step-000000000020.carousel"), 1U);
  EXPECT_EQ(files.count("step-000000000030.carousel"), 0U);
  EXPECT_EQ(files.count("step-000000000040.carousel"), 0U);
  EXPECT_EQ(files.count("best.carousel"), 0U) << "of the first run";
  EXPECT_TRUE(std::filesystem::exists(named)) << "what a person named is not ours";
  std::filesystem::remove(checkpoint());
  const ProgramResult result = run({"train", "--text", text_, "--out", out_, "--batch-size", "4"});
  EXPECT_EQ(error_of(result),
            "char_lm: [--out] " + out_ + " holds a run at step 20: name another folder, or give --overwrite\n");
}

// Flags

TEST_F(Handed, CommandsThatReadACheckpointRefuseFlagsThatMakeNoSense) {  // HD-40
  ASSERT_EQ(train(text_).exit_code, 0);
  const auto refusal = [this](const Arguments& arguments) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  for (const std::string value : {"foo", "10x", "1e3", "", "99999999999999999999"}) {
    EXPECT_EQ(refusal({"sample", out_, "--length", value}),
              "char_lm: [--length] must be a whole number: got \"" + value + "\"\n");
  }
  EXPECT_EQ(refusal({"sample", out_, "--length", "-5"}), "char_lm: [--length] must be in [0, 1000000000]: got -5\n");
  EXPECT_EQ(refusal({"sample", out_, "--temperature", "inf"}),
            "char_lm: [--temperature] must be a finite number: got \"inf\"\n");
  EXPECT_EQ(refusal({"sample", out_, "--lenght", "5"}), "char_lm: [--lenght] no such option; did you mean --length?\n");
  EXPECT_EQ(refusal({"sample", out_, "--seed"}), "char_lm: [--seed] needs a value: got none\n");
  EXPECT_EQ(refusal({"sample", out_, "--seed", "9223372036854775807", "--samples", "2"}),
            "char_lm: [--seed] must leave seeds for 2 texts: got 9223372036854775807\n");
  EXPECT_EQ(refusal({"eval", out_, "--split", "1.5"}),
            "char_lm: [--split] must be nanogpt, char-rnn, torch-rnn, or shares like 0.9 or 0.8,0.1: got \"1.5\"\n");
  EXPECT_EQ(refusal({"eval", out_, "--jsn"}), "char_lm: [--jsn] no such option; did you mean --json?\n");
  EXPECT_EQ(refusal({"smaple", out_}).find("did you mean sample?") == std::string::npos, false);
}

TEST_F(Handed, AnEmptyWordIsNoFile) {  // HD-40: what a script's unset variable leaves must not become a default
  for (const std::string option : {"--text", "--resume", "--config"}) {
    const ProgramResult result = run({"train", option, "", "--out", out_, "--steps", "1"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, "char_lm: [" + option + "] must not be empty: got \"\"\n");
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
}

TEST_F(Handed, APathThatCannotBeLookedAtIsNamed) {
  const std::string path = folder_.path(std::string(300, 'x'));
  for (const Arguments& arguments : {Arguments{"train", "--text", path},
                                     {"train", "--resume", path},
                                     {"train", "--config", path},
                                     {"sample", path},
                                     {"info", path},
                                     {"replay", path}}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(error_of(result), "char_lm: [file] cannot use " + path + ": File name too long\n");
  }
}

// Signals. What a run becomes after them is what it would have been.

TEST_F(Handed, ASignalAtAnUpdateFarFromACheckpointLosesNothing) {  // HD-39
  const Arguments options = {"--steps", "1000", "--checkpoint-every", "1000", "--eval-interval", "1000"};
  ASSERT_EQ(train_lstm(options).exit_code, 0);
  const std::string digest = info()["state_sha256"];
  out_ = folder_.path("parts");
  ProgramResult result = train_lstm(options, [this](int pid) {
    for (int i = 0; i < 3000 && line_count() < 237; ++i) usleep(2000);
    kill(pid, SIGINT);
  });
  ASSERT_EQ(result.exit_code, 130) << result.err;
  EXPECT_GE(info()["step"], 237);
  EXPECT_NE(result.out.find("checkpoint: " + checkpoint()), std::string::npos) << result.out;
  result = run_built("char_lm", {"train", "--resume", out_}, [this](int pid) {
    for (int i = 0; i < 3000 && line_count() < 737; ++i) usleep(2000);
    kill(pid, SIGTERM);
  });
  ASSERT_EQ(result.exit_code, 143) << result.err;
  ASSERT_EQ(run({"train", "--resume", out_}).exit_code, 0);
  EXPECT_EQ(info()["state_sha256"], digest);
  EXPECT_EQ(log().size(), 1000U) << "no gap, no step twice";
}

TEST_F(Handed, ASignalWhileACheckpointIsWrittenHarmsNone) {  // HD-39
  const Arguments large = {
      "train", "--text",          text_,    "--out",        out_, "--rnn_size", "1000",   "--embedding",
      "1000",  "--seq-length",    "4",      "--batch-size", "1",  "--steps",    "100000", "--checkpoint-every",
      "1",     "--eval-interval", "100000", "--threads",    "1"};
  for (const int second : {0, SIGINT, SIGTERM}) {
    const ProgramResult result = run_built("char_lm", large, [&](int pid) {
      for (int i = 0; i < 3000 && !std::filesystem::exists(out_ + "/config.json"); ++i) usleep(1000);
      for (int i = 0; i < 30000 && !std::filesystem::exists(checkpoint() + ".tmp"); ++i) usleep(100);
      kill(pid, SIGINT);
      usleep(2000);
      if (second != 0) kill(pid, second);
    });
    EXPECT_EQ(result.exit_code, second == SIGTERM ? 143 : 130) << result.err;
    const int64_t step = info()["step"];
    EXPECT_GE(step, second == 0 ? 1 : 0);
    EXPECT_EQ(run({"train", "--resume", out_, "--stop-after", std::to_string(step + 1)}).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(checkpoint() + ".tmp")) << "the next save takes its place";
    std::filesystem::remove_all(out_);
  }
}

}  // namespace
}  // namespace carousel::examples
