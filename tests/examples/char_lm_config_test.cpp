// What a person may say to char_lm train, on the command line and in a configuration file.
#include <carousel/nn/registry.h>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class Configured : public CharLm {
 protected:
  std::string config_of(const std::string& folder) {
    std::ifstream file(folder + "/config.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string error_of(const Arguments& more) {
    Arguments arguments = {"train", "--text", text_, "--out", out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out_));
    return result.err;
  }
};

TEST_F(Configured, RepeatsARunFromItsOwnConfiguration) {
  for (const LayerKind& kind : layer_kinds()) {
    SCOPED_TRACE(kind.name);
    out_ = folder_.path(kind.name);
    ASSERT_EQ(train(text_, {"--model", kind.name, "--embedding", "16", "--layers", "2", "--dropout", "0.1", "--lr",
                            "0.003", "--schedule", "step", "--optimizer", "rmsprop", "--seed", "7"})
                  .exit_code,
              0);
    const json first = info();
    const std::string config = out_ + "/config.json";
    out_ = folder_.path(kind.name + "-again");
    const ProgramResult again = run({"train", "--config", config, "--out", out_});
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(info()["state_sha256"], first["state_sha256"]);
    json written = json::parse(config_of(out_)), expected = json::parse(config_of(folder_.path(kind.name)));
    expected["out"] = out_;
    EXPECT_EQ(written, expected);
  }
}

TEST_F(Configured, IsBeatenByTheCommandLineWithWhatFollows) {
  ASSERT_EQ(train(text_, {"--model", "gpt", "--n_embd", "24", "--embedding", "24", "--hidden", "24"}).exit_code, 2);
  ASSERT_EQ(run({"train", "--text", text_, "--out", out_, "--model", "gpt", "--n_embd", "24", "--steps", "20",
                 "--seq-length", "16", "--batch-size", "4"})
                .exit_code,
            0);
  const std::string config = out_ + "/config.json";
  out_ = folder_.path("second");
  const auto changed = [&](Arguments more) {
    Arguments arguments = {"train", "--config", config, "--out", out_, "--overwrite"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return info();
  };
  json told = changed({"--hidden", "16"});
  EXPECT_EQ(told["hidden_size"], 16);
  EXPECT_EQ(told["embedding_size"], 16) << "blocks have one width";
  told = changed({"--wordvec_size", "32"});
  EXPECT_EQ(told["hidden_size"], 32);
  told = changed({"--n_embd", "8", "--seq-length", "8", "--steps", "40", "--lr", "0.02"});
  EXPECT_EQ(told["hidden_size"], 8);
  EXPECT_EQ(told["context"], 8) << "follows the windows";
  EXPECT_EQ(told["warmup"], 4) << "follows the steps";
  EXPECT_EQ(told["lr_decay_steps"], 40);
  EXPECT_EQ(told["min_lr"], 0.001);
}

TEST_F(Configured, ChoosesModelAndPreset) {
  const std::string ssm = write("ssm.json", R"({"model": "ssm", "state_size": 4, "steps": 3, "batch_size": 4})");
  ASSERT_EQ(run({"train", "--text", text_, "--out", out_, "--config", ssm}).exit_code, 0);
  EXPECT_EQ(info()["model"], "ssm");
  EXPECT_EQ(info()["state_size"], 4);
  const std::string preset = write("preset.json", R"({"preset": "shakespeare-fast", "steps": 3, "hidden": 8})");
  ASSERT_EQ(run({"train", "--text", text_, "--out", out_, "--overwrite", "--config=" + preset}).exit_code, 0);
  EXPECT_EQ(info()["model"], "gru");
  EXPECT_EQ(info()["embedding_size"], 64) << "the preset's";
  EXPECT_EQ(info()["hidden_size"], 8) << "a file beats a preset";
  const ProgramResult other = run({"train", "--config", ssm, "--model", "lstm"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.err, "char_lm: [" + ssm + ": state_size] is an option of --model ssm, not of lstm\n");
}

TEST_F(Configured, GoesOnWithARun) {
  ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
  const std::string config = config_of(out_);
  const ProgramResult result = run({"train", "--config", out_ + "/config.json", "--resume", out_, "--steps", "25"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(info()["step"], 25);
  EXPECT_EQ(config_of(out_), config) << "tells how the run began";
}

TEST_F(Configured, StartsFromWeightsAgain) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const std::string first = out_, second = folder_.path("second");
  ASSERT_EQ(run({"train", "--init-from", first, "--out", second, "--dropout", "0.1", "--steps", "5"}).exit_code, 0);
  out_ = folder_.path("third");
  const ProgramResult result = run({"train", "--config", second + "/config.json", "--out", out_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json told = info();
  out_ = second;
  EXPECT_EQ(told["state_sha256"], info()["state_sha256"]);
}

TEST_F(Configured, HelpShowsItsValuesAsDefaults) {
  const std::string config = write("c.json", R"({"hidden_size": 77})");
  const ProgramResult result = run({"train", "--config", config, "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("width of a layer (default 77;"), std::string::npos) << result.out;
}

// HD-40 of the faults that people met elsewhere: flags that make no sense are said before a file is touched, naming
// flag and value.
TEST_F(Configured, RefusesFlagsThatMakeNoSense) {
  for (const std::string value : {"foo", "10x", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(error_of({"--batch-size", value}),
              "char_lm: [--batch-size] must be a whole number: got \"" + value + "\"\n");
  }
  for (const std::string value : {"-5", "0"}) {
    EXPECT_EQ(error_of({"--batch-size", value}),
              "char_lm: [--batch-size] must be in [1, 1048576]: got " + value + "\n");
  }
  for (const std::string value : {"nan", "inf"}) {
    EXPECT_EQ(error_of({"-learning_rate", value}),
              "char_lm: [-learning_rate] must be a finite number: got \"" + value + "\"\n");
  }
  EXPECT_EQ(error_of({"--lr", "-1"}), "char_lm: [--lr] must be in [0, 100]: got -1\n");
  EXPECT_EQ(error_of({"--dropout", "1.5"}), "char_lm: [--dropout] must be in [0, 0.99]: got 1.5\n");
  EXPECT_EQ(error_of({"--hiden-size", "8"}), "char_lm: [--hiden-size] no such option; did you mean --hidden-size?\n");
  EXPECT_EQ(error_of({"--seed"}), "char_lm: [--seed] needs a value: got none\n");
  EXPECT_EQ(run({"train", "--help"}).exit_code, 0);

  const std::string missing = folder_.path("missing.txt");
  const ProgramResult none = run({"train", "--text", missing, "--out", out_});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("[--text] no such file: got " + missing), std::string::npos) << none.err;
  const ProgramResult directory = run({"train", "--text", folder_.path(""), "--out", out_});
  EXPECT_EQ(directory.exit_code, 1);
  EXPECT_NE(directory.err.find("this is a folder"), std::string::npos) << directory.err;
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(Configured, NamesTheOptionsOfSizesThatDoNotGoTogether) {
  EXPECT_EQ(
      error_of({"--model", "gpt", "--hidden-size", "17", "--n_head", "4"}),
      "char_lm: [--model] gpt cannot have --hidden-size 17, --n_head 4: heads must divide the size: got 4 and 17\n");
  EXPECT_EQ(error_of({"--min-lr", "1", "-learning_rate", "0.5"}),
            "char_lm: [--min-lr] must not exceed -learning_rate: got 1 and 0.5\n");
  EXPECT_EQ(error_of({"--model", "gpt", "--block_size", "30", "--context", "20"}),
            "char_lm: [--block_size] must not exceed --context: got 30 and 20\n");
  EXPECT_EQ(error_of({"--n_head=4"}), "char_lm: [--n_head] is an option of --model gpt, not of rnn\n");
  const ProgramResult shorter = run({"train", "--text", text_, "--out", out_, "--batch-size", "500"});
  EXPECT_EQ(shorter.exit_code, 1);
  EXPECT_NE(shorter.err.find("[--text] --batch-size 500 times --seq-length 64 need at least 32001 tokens: got "),
            std::string::npos)
      << shorter.err;
}

TEST_F(Configured, TakesTheCommandLineOfNanoGpt) {
  const ProgramResult result = run({"train",
                                    "--text=" + text_,
                                    "--model=gpt",
                                    "--out_dir=" + out_,
                                    "--eval_interval=250",
                                    "--eval_iters=20",
                                    "--log_interval=1",
                                    "--always_save_checkpoint=False",
                                    "--wandb_log=False",
                                    "--wandb_project=shakespeare-char",
                                    "--wandb_run_name=mini-gpt",
                                    "--gradient_accumulation_steps=1",
                                    "--batch_size=4",
                                    "--block_size=16",
                                    "--n_layer=2",
                                    "--n_head=4",
                                    "--n_embd=16",
                                    "--dropout=0.0",
                                    "--bias=True",
                                    "--learning_rate=1e-3",
                                    "--max_iters=3",
                                    "--lr_decay_iters=3",
                                    "--decay_lr=True",
                                    "--min_lr=1e-4",
                                    "--beta2=0.99",
                                    "--warmup_iters=1",
                                    "--init_from=scratch",
                                    "--backend=nccl",
                                    "--device=cpu",
                                    "--dtype=float32",
                                    "--compile=False"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("note: without effect here: --eval_iters=20 (validation reads the whole split), "
                            "--always_save_checkpoint=False (the last and the best are kept), --wandb_log=False, "),
            std::string::npos)
      << result.err;
  std::filesystem::remove_all(out_);
  EXPECT_EQ(error_of({"--dataset=shakespeare_char", "--device=cuda", "--compile=True"}),
            "char_lm: [--dataset] no such option: use --text FILE; [--device] must ask for the CPU, which is all there "
            "is: leave it out; [--compile] must be False, since nothing is compiled: leave it out\n");
}

TEST_F(Configured, SaysWhatHasNoEffectOrAnotherMeaning) {
  const ProgramResult result = train(text_, {"-grad_clip", "5", "-learning_rate_decay", "0.9", "--momentum", "0.9"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(
      result.err.find("note: -learning_rate_decay has no effect: it belongs to --schedule step or exponential, and "
                      "this is cosine\n"),
      std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("note: --momentum has no effect: it belongs to --optimizer sgd or rmsprop"),
            std::string::npos);
  EXPECT_NE(result.err.find("note: -grad_clip bounds the joint norm"), std::string::npos);
  EXPECT_EQ(train(text_, {"--grad_clip", "5"}).err.find("-grad_clip"), std::string::npos);
}

}  // namespace
}  // namespace carousel::examples
