#include <carousel/nn/registry.h>

#include <sys/wait.h>

#include <cstdlib>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

TEST_F(CharLm, TrainsAndLogs) {
  const ProgramResult result = train(text_, {"--steps", "250", "--eval-interval", "200"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("SIMD"), std::string::npos) << "the header says what computes: " << result.err;
  EXPECT_NE(result.out.find("checkpoint: " + out_ + "/checkpoint.carousel\n"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\r'), std::string::npos) << "plain lines when piped";

  const std::vector<json> records = log();
  ASSERT_EQ(records.size(), 3u);
  const std::vector<int> steps = {records[0]["step"], records[1]["step"], records[2]["step"]};
  EXPECT_EQ(steps, (std::vector<int>{100, 200, 250}));
  for (const json& record : records) {
    EXPECT_EQ(record["tokens"], record["step"].get<int>() * 4 * 16);
    EXPECT_EQ(record.contains("val_loss"), record["step"] != 100);
    for (const char* name : {"train_loss", "tokens_per_s", "grad_norm", "lr", "peak_rss_mib"}) {
      EXPECT_GT(record[name].get<double>(), 0) << name;
    }
  }
  EXPECT_LT(records[2]["train_loss"], records[0]["train_loss"]);
  EXPECT_LT(records[2]["val_loss"].get<double>(), 1.0);  // ln 15 = 2.7 at first; 0.4 when this was written
}

TEST_F(CharLm, TheSameSeedGivesTheSameNumbers) {
  const auto losses = [this](const Arguments& more) {
    EXPECT_EQ(train(text_, more).exit_code, 0);
    return std::pair(log().back()["train_loss"].get<double>(), log().back()["val_loss"].get<double>());
  };
  const auto first = losses({"--dropout", "0.3", "--layers", "2"});
  EXPECT_EQ(losses({"--dropout", "0.3", "--layers", "2"}), first);
  EXPECT_NE(losses({"--dropout", "0.3", "--layers", "2", "--seed", "2"}), first);
}

TEST_F(CharLm, ValidatingMoreOftenChangesNothing) {
  const auto loss = [this](const std::string& interval) {
    EXPECT_EQ(train(text_, {"--eval-interval", interval, "--dropout", "0.3", "--layers", "2"}).exit_code, 0);
    return log().back()["val_loss"].get<double>();
  };
  EXPECT_EQ(loss("1"), loss("1000"));
}

TEST_F(CharLm, SamplesTheSameTextForTheSameSeed) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const auto text = [this](const Arguments& more) {
    Arguments arguments = {"sample", out_, "--length", "50"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments).out;
  };
  EXPECT_EQ(text({"--seed", "7"}), text({"--seed", "7"}));
  EXPECT_NE(text({"--seed", "7"}), text({"--seed", "8"}));
  EXPECT_EQ(text({"--temperature", "0", "--seed", "7"}), text({"--temperature", "0", "--seed", "8"}));
  EXPECT_EQ(text({"--temperature", "0"}), text({"--top-k", "1"}));
  EXPECT_EQ(text({"-primetext", "the cat"}).substr(0, 7), "the cat");

  const json object = json::parse(text({"--json", "--prompt", "the"}));
  EXPECT_EQ(object["prompt"], "the");
  EXPECT_EQ(object["text"].get<std::string>().size(), 50u);
}

TEST_F(CharLm, TakesTheOptionsOfCharRnnAndNanoGpt) {
  const ProgramResult old = run({"train",
                                 "--text",
                                 text_,
                                 "-checkpoint_dir",
                                 out_,
                                 "-rnn_size",
                                 "24",
                                 "-num_layers",
                                 "1",
                                 "-model",
                                 "rnn",
                                 "-learning_rate",
                                 "2e-3",
                                 "-seq_length",
                                 "8",
                                 "-batch_size",
                                 "5",
                                 "-dropout",
                                 "0",
                                 "-grad_clip",
                                 "5",
                                 "-seed",
                                 "123",
                                 "-eval_val_every",
                                 "5",
                                 "--max_iters=10",
                                 "--warmup_iters=2",
                                 "-print_every",
                                 "4"});
  ASSERT_EQ(old.exit_code, 0) << old.err;
  EXPECT_EQ(log().front()["step"], 4);
  EXPECT_EQ(info()["hidden_size"], 24);
  EXPECT_EQ(info()["steps"], 10);
  const ProgramResult gpt =
      run({"train", "--text=" + text_, "--out_dir=" + out_, "--n_embd=20", "--n_layer=2", "--block_size=8",
           "--batch_size=5", "--max_iters=10", "--learning_rate=1e-3", "--min_lr=1e-4", "--beta2=0.99",
           "--weight_decay=0.1", "--warmup_iters=2", "--eval_interval=5", "--dropout=0.2", "--log_interval=10",
           "--init_from=scratch", "--overwrite"});
  ASSERT_EQ(gpt.exit_code, 0) << gpt.err;
  EXPECT_EQ(info()["hidden_size"], 20);
  EXPECT_EQ(info()["embedding_size"], 20) << "n_embd is the one width of nanoGPT";
  EXPECT_EQ(info()["layers"], 2);
}

TEST_F(CharLm, AdvisesWhoComesFromAnotherProgram) {
  const auto error = [this](const std::string& option) { return train(text_, {option, "1"}).err; };
  EXPECT_EQ(error("-data_dir"), "char_lm: [-data_dir] no such option: use --text FILE\n");
  EXPECT_EQ(error("--dataset"), "char_lm: [--dataset] no such option: use --text FILE\n");
  EXPECT_EQ(error("--device"), "char_lm: [--device] must ask for the CPU, which is all there is: leave it out\n");
  EXPECT_NE(error("-max_epochs").find("use --steps; one pass is N / (batch * seq) windows"), std::string::npos);
}

TEST_F(CharLm, WarmsUpForATenthOfAShortRun) {
  const auto warmup = [this](const std::string& steps) {
    const ProgramResult result = run({"train", "--text", text_, "--out", out_, "--steps", steps, "--hidden", "8",
                                      "--batch-size", "4", "--seq-length", "8", "--overwrite"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return info()["warmup"].get<int>();
  };
  EXPECT_EQ(warmup("50"), 5);
  EXPECT_EQ(warmup("1200"), 100);
}

TEST_F(CharLm, ClipsEveryElementOfAGradient) {
  const auto loss = [this](const std::string& limit) {
    EXPECT_EQ(train(text_, {"--grad-clip", "0", "--grad-clip-value", limit, "--steps", "3"}).exit_code, 0);
    return log().back()["train_loss"].get<double>();
  };
  EXPECT_EQ(loss("0"), loss("1000")) << "off, and out of reach";
  EXPECT_NE(loss("0"), loss("0.001"));
}

TEST_F(CharLm, TrainsOnWindowsDrawnAfresh) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const double contiguous = log().back()["val_loss"];
  ASSERT_EQ(train(text_, {"--windows", "random"}).exit_code, 0);
  EXPECT_NE(log().back()["val_loss"], contiguous);
}

TEST_F(CharLm, FindsItsTextFromAnotherFolder) {
  const std::string command = "cd " + folder_.path("") + " && " + CAROUSEL_BIN +
                              "/char_lm train --text text.txt --out run" + " --steps 2 --batch-size 4 >/dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(info()["text"], text_);
  EXPECT_EQ(run({"eval", out_}).exit_code, 0);
}

// The exit code of a shell command in which CHAR_LM stands for the program.
int shell(std::string command) {
  const std::string name = "CHAR_LM";
  command.replace(command.find(name), name.size(), std::string(CAROUSEL_BIN) + "/char_lm");
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST_F(CharLm, NeedsNoStandardError) {
  ASSERT_EQ(train(text_).exit_code, 0);
  EXPECT_EQ(shell("CHAR_LM info " + out_ + " 2>/dev/full >/dev/null"), 0);
  EXPECT_EQ(shell("CHAR_LM info " + out_ + " 2>&- >/dev/null"), 0);
  EXPECT_EQ(shell("CHAR_LM info nosuch 2>&- >/dev/null"), 1);
}

TEST_F(CharLm, KeepsItsOutputOutOfTheLogWhenStandardOutputIsClosed) {
  EXPECT_EQ(shell("CHAR_LM train --text " + text_ + " --out " + out_ + " --steps 20 --batch-size 4 >&- 2>/dev/null"),
            0);
  EXPECT_EQ(log().size(), 1U);  // throws where a line is no JSON
}

TEST_F(CharLm, KeepsTheLogOfARunThatAFailedStartWouldReplace) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const size_t records = log().size();
  std::filesystem::create_directory(out_ + "/checkpoint.carousel.tmp");  // nothing can be saved now
  EXPECT_EQ(train(text_).exit_code, 1);
  EXPECT_EQ(log().size(), records);
  EXPECT_EQ(info()["step"], 20);
}

TEST_F(CharLm, SavesBeforeItValidatesAndLogs) {
  ASSERT_EQ(train(text_, {"--eval-interval", "10", "--steps", "20"}).exit_code, 0);
  std::filesystem::remove(out_ + "/log.jsonl");
  std::filesystem::create_symlink("/dev/full", out_ + "/log.jsonl");
  EXPECT_EQ(train(text_, {"--eval-interval", "10", "--steps", "20"}).exit_code, 1);
  EXPECT_EQ(info()["step"], 10);
}

TEST_F(CharLm, RefusesATextThatNeverEnds) {
  const ProgramResult result = train("/dev/zero");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("[--text] must be a regular file, which ends somewhere: got /dev/zero"), std::string::npos)
      << result.err;
}

// Text input

TEST_F(CharLm, ReadsAndWritesTextOutsideAscii) {  // HD-21
  ASSERT_EQ(train(write("accents.txt", repeated("naïve café – 日本\n", 300))).exit_code, 0);
  EXPECT_EQ(info()["vocabulary_size"], 13);
  const ProgramResult result = run({"sample", out_, "--length", "500", "--prompt", "café 日"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("café 日"));
  const json object = json::parse(run({"sample", out_, "--length", "500", "--json"}).out);  // refuses what is not UTF-8
  EXPECT_GE(object["text"].get<std::string>().size(), 500u);
}

TEST_F(CharLm, NamesASymbolThatTheModelDoesNotKnow) {  // HD-22
  ASSERT_EQ(train(write("hello.txt", repeated("Helloworld!\n", 300))).exit_code, 0);
  const auto error = [this](const std::string& prompt) {
    const ProgramResult result = run({"sample", out_, "--prompt", prompt});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    return result.err.substr(result.err.find("char_lm: "));
  };
  const std::string rule = "char_lm: [encode] symbol must be in the vocabulary: got ";
  EXPECT_EQ(error(" "), rule + "U+0020 ' ' at position 0\n");
  EXPECT_EQ(error("Hello world"), rule + "U+0020 ' ' at position 5\n");
  EXPECT_EQ(error("Zürich"), rule + "U+005A 'Z' at position 0\n");
  EXPECT_EQ(run({"sample", out_}).exit_code, 0);
  EXPECT_EQ(run({"sample", out_, "--prompt", ""}).out, run({"sample", out_}).out);
}

TEST_F(CharLm, SamplesWithoutALineEndInTheVocabulary) {  // HD-22
  ASSERT_EQ(train(write("line.txt", repeated("Helloworld!", 300))).exit_code, 0);
  EXPECT_EQ(run({"sample", out_, "--length", "10"}).out.size(), 11u) << "ten symbols and our line end";
}

TEST_F(CharLm, TreatsMarksAndLineEndsByOnePolicy) {  // HD-23
  const ProgramResult windows = train(write("windows.txt", "\xEF\xBB\xBF" + repeated("a\r\nb\r\n", 1000)));
  ASSERT_EQ(windows.exit_code, 0) << windows.err;
  EXPECT_NE(windows.err.find("dropped the byte-order mark"), std::string::npos);
  EXPECT_NE(windows.err.find("changed 2000 line ends from CR LF to LF"), std::string::npos);
  EXPECT_EQ(info()["vocabulary"], "\nab");
  const json sampled = json::parse(run({"sample", out_, "--json"}).out);

  ASSERT_EQ(train(write("unix.txt", repeated("a\nb\n", 1000))).exit_code, 0);
  EXPECT_EQ(json::parse(run({"sample", out_, "--json"}).out), sampled);
  ASSERT_EQ(train(write("open.txt", repeated("a\nb\n", 999) + "a\nb")).exit_code, 0);
  EXPECT_EQ(info()["vocabulary"], "\nab");
}

TEST_F(CharLm, NamesSizeFoundAndNeededForAShortText) {  // HD-20
  for (const int size : {1, 30, 2000, 2500}) {
    const ProgramResult result =
        train(write("short.txt", repeated("x", size)), {"--split", "1", "--seq-length", "50", "--batch-size", "50"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("need at least 2501 tokens: got " + std::to_string(size)), std::string::npos)
        << result.err;
    EXPECT_FALSE(std::filesystem::exists(out_)) << "nothing was written";
  }
  EXPECT_NE(train(write("empty.txt", "")).err.find("the file is empty"), std::string::npos);
}

TEST_F(CharLm, TrainsOnTheLeastThatIsEnough) {  // HD-20
  const auto code = [this](int size, const std::string& rows) {
    return train(write("least.txt", repeated("x", size)),
                 {"--split", "1", "--seq-length", "50", "--batch-size", rows, "--steps", "3"})
        .exit_code;
  };
  EXPECT_EQ(code(2501, "50"), 0);
  EXPECT_FALSE(log().back().contains("val_loss")) << "a share of 0 trains without validation";
  EXPECT_EQ(code(51, "1"), 0);
  EXPECT_EQ(code(50, "1"), 1);
}

TEST_F(CharLm, AValidationPartShorterThanABatchIsReadWhole) {  // HD-20
  const std::string text = write("text.txt", repeated("abcde\n", 500));
  const Arguments sizes{"--seq-length", "50", "--batch-size", "50", "--steps", "3", "--split", "0.9"};
  EXPECT_EQ(train(text, sizes).exit_code, 0);
  EXPECT_TRUE(log().back().contains("val_loss"));
}

TEST_F(CharLm, SaysWhenThereIsNoValidation) {
  const ProgramResult result = train(text_, {"--split", "1"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("too few characters for a validation"), std::string::npos);
}

// Errors

TEST_F(CharLm, RefusesNonsenseBeforeAnyFileIsTouched) {
  const auto error = [this](const Arguments& more) {
    const ProgramResult result = train(text_, more);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_FALSE(std::filesystem::exists(out_));
    return result.err;
  };
  EXPECT_EQ(error({"--batch-size", "-5"}), "char_lm: [--batch-size] must be in [1, 1048576]: got -5\n");
  EXPECT_EQ(error({"--lr", "nan"}), "char_lm: [--lr] must be a finite number: got \"nan\"\n");
  EXPECT_EQ(error({"--dropout", "1.5"}), "char_lm: [--dropout] must be in [0, 0.99]: got 1.5\n");
  EXPECT_EQ(error({"--sede", "1"}), "char_lm: [--sede] no such option; did you mean --seed?\n");
  EXPECT_EQ(error({"--split", "half"}),
            "char_lm: [--split] must be nanogpt, char-rnn, torch-rnn, or shares like 0.9 or 0.8,0.1: got \"half\"\n");
  EXPECT_EQ(error({"--lr", "0.1", "--min-lr", "0.2"}), "char_lm: [--min-lr] must not exceed --lr: got 0.2 and 0.1\n");
  EXPECT_EQ(error({"--steps", "1"}), "char_lm: [--warmup] must not exceed the steps of the schedule: got 2 and 1\n");
  EXPECT_EQ(error({"--model", "rmn"}),
            "char_lm: [--model] must be one of " + join(layer_kind_names()) + ": got \"rmn\"; did you mean rnn?\n");
}

TEST_F(CharLm, TellsAMissingTextFromAFolder) {  // HD-40
  const std::string missing = folder_.path("missing.txt");
  ProgramResult result = train(missing);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("char_lm: [--text] no such file: got " + missing + "\n"), std::string::npos) << result.err;
  result = train(folder_.path(""));
  EXPECT_NE(result.err.find("this is a folder"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(CharLm, RefusesAFolderThatCannotBeMade) {
  const std::string file = write("file", "x");
  const ProgramResult result = run({"train", "--text", text_, "--out", file + "/run", "--batch-size", "4"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("[--out] cannot make the folder " + file + "/run: Not a directory"), std::string::npos)
      << result.err;
}

TEST_F(CharLm, RefusesWhatIsNotACheckpoint) {
  for (const char* command : {"sample", "eval", "info"}) {
    const ProgramResult missing = run({command, folder_.path("nowhere")});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_NE(missing.err.find("[checkpoint] no checkpoint at " + folder_.path("nowhere") + "\n"), std::string::npos)
        << missing.err;
    const ProgramResult text = run({command, text_});
    EXPECT_EQ(text.exit_code, 1);
    EXPECT_NE(text.err.find(text_), std::string::npos) << text.err;
    EXPECT_EQ(run({command}).exit_code, 2);
  }
}

TEST_F(CharLm, RefusesSamplingOptionsOutsideTheirRange) {
  ASSERT_EQ(train(text_).exit_code, 0);
  EXPECT_EQ(run({"sample", out_, "--temperature", "-1"}).err,
            "char_lm: [--temperature] must be in [0, 1000000]: got -1\n");
  EXPECT_EQ(run({"sample", out_, "--temperature", "nan"}).exit_code, 2);
  EXPECT_EQ(run({"sample", out_, "--top-k", "-1"}).exit_code, 2);
  EXPECT_EQ(run({"sample", out_, "--top-k", "50000"}).out, run({"sample", out_, "--top-k", "0"}).out);
}

TEST_F(CharLm, StopsAtALossThatIsNotFinite) {
  const ProgramResult result =
      train(text_, {"--nonlinearity", "relu", "--lr", "100", "--grad-clip", "0", "--steps", "200"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("[train] loss must be finite: got "), std::string::npos) << result.err;
  EXPECT_EQ(run({"sample", out_}).exit_code, 0) << "the checkpoint from before the first step is whole";
}

TEST_F(CharLm, HelpAndVersionSucceed) {
  for (const Arguments& arguments :
       {Arguments{"--help"}, {"--version"}, {"train", "--help"}, {"train", "--version"}, {"sample", "--help"}}) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_FALSE(result.out.empty());
  }
  EXPECT_NE(run({"--version"}).out.find("BLAS"), std::string::npos);
  EXPECT_EQ(run({}).exit_code, 2);
}

}  // namespace
}  // namespace carousel::examples
