#include "common/options.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace carousel::examples {
namespace {

using Arguments = std::vector<std::string>;

class Options : public ::testing::Test {
 protected:
  Options() {
    Command train{
        .name = "train",
        .help = "Trains",
        .groups = {{"Training",
                    {{.name = "batch_size", .target = &batch_size_, .help = "rows", .minimum = 1, .maximum = 1024},
                     {.name = "seed", .target = &seed_, .help = "numbers", .minimum = 0},
                     {.name = "lr",
                      .target = &lr_,
                      .help = "rate",
                      .minimum = 0,
                      .maximum = 10,
                      .aliases = {"learning_rate"}},
                     {.name = "dropout", .target = &dropout_, .help = "share", .minimum = 0, .maximum = 1},
                     {.name = "hidden_size",
                      .target = &hidden_size_,
                      .help = "width",
                      .minimum = 1,
                      .maximum = 65536,
                      .aliases = {"hidden", "rnn_size"}}}},
                   {"Model",
                    {{.name = "model", .target = &model_, .help = "kind", .choices = {"rnn", "lstm"}},
                     {.name = "json", .target = &json_, .help = "as JSON"},
                     {.name = "gate", .target = &gate_, .help = "with a gate"},
                     {.name = "prompt", .target = &prompt_, .help = "start"},
                     {.name = "min_lr", .target = &min_lr_, .help = "last rate", .minimum = 0}}}},
        .strangers = {{"data_dir", {.advice = "no such option: use --text FILE"}},
                      {"device", {.advice = "must be cpu", .granted = {"cpu", "none"}}},
                      {"gpuid", {.advice = "must be -1", .granted = {"-1"}}},
                      {"backend", {.advice = "", .granted = {"*"}, .remark = "there is one"}}},
        .config = &config_,
        .check = [this](const Given& given) {
          given_ = given;
          check<ValueError>(hidden_size_ != 13, "--hidden-size", "must not be 13: got 13");
        }};
    Command info{.name = "info",
                 .help = "Tells",
                 .positionals = {{.name = "checkpoint", .target = &checkpoint_, .help = "a file or folder"}}};
    program_ = {.name = "program", .help = "Does things", .commands = {train, info}};
  }

  Request parse(const std::vector<std::string>& arguments) { return parse_command_line(program_, arguments); }
  Request train(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    return parse(arguments);
  }
  std::string error_of(const std::vector<std::string>& arguments) {
    try {
      parse(arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string train_error(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    return error_of(arguments);
  }

  int64_t batch_size_ = 32, seed_ = 1, hidden_size_ = 128;
  double lr_ = 0.004, dropout_ = 0, min_lr_ = std::numeric_limits<double>::quiet_NaN();
  bool json_ = false, gate_ = true;
  std::string model_ = "rnn", prompt_ = "\n", checkpoint_;
  Given given_;
  Config config_;
  Program program_;
};

TEST_F(Options, AFlagThatIsOnCanBeSwitchedOff) {
  for (const char* off : {"--no-gate", "--gate=false", "--no_gate"}) {
    gate_ = true;
    train({off, "--seed", "3"});
    EXPECT_FALSE(gate_) << off;
    EXPECT_EQ(given_.count("gate"), 1U) << off;
  }
  train({"--gate"});
  EXPECT_TRUE(gate_);
  EXPECT_EQ(train_error({"--gate", "--no-gate"}), "[--no-gate] must be given once: got it again");
  EXPECT_EQ(train_error({"--no-seed"}).substr(0, 26), "[--no-seed] no such option");
}

TEST_F(Options, SetsTargetsAndKeepsDefaults) {
  const Request request = train({"--batch-size", "50", "--lr=1e-3", "--json", "--model", "lstm"});
  ASSERT_NE(request.command, nullptr);
  EXPECT_EQ(request.command->name, "train");
  EXPECT_EQ(batch_size_, 50);
  EXPECT_EQ(lr_, 1e-3);
  EXPECT_TRUE(json_);
  EXPECT_EQ(model_, "lstm");
  EXPECT_EQ(hidden_size_, 128);
  EXPECT_EQ(dropout_, 0);
}

TEST_F(Options, TakesTheSpellingsOfOtherPrograms) {
  for (const char* name : {"--hidden-size", "--hidden_size", "-hidden_size", "--rnn_size", "--rnn-size", "-rnn_size",
                           "--hidden", "-hidden"}) {
    hidden_size_ = 128;
    train({name, "256"});
    EXPECT_EQ(hidden_size_, 256) << name;
    train({std::string(name) + "=300"});
    EXPECT_EQ(hidden_size_, 300) << name;
  }
  train({"-learning_rate", "2e-3"});
  EXPECT_EQ(lr_, 2e-3);
}

TEST_F(Options, ReadsWholeNumbersStrictly) {
  for (const char* value : {"foo", "10x", "1e3", "0x10", "1.5", "", " 5", "+5", "nan", "inf", "99999999999999999999",
                            "-99999999999999999999", "1_000"}) {
    EXPECT_EQ(train_error({"--batch-size", value}),
              std::string("[--batch-size] must be a whole number: got \"") + value + "\"");
    EXPECT_EQ(batch_size_, 32) << value;
  }
}

TEST_F(Options, ChecksTheRangeOfWholeNumbers) {
  for (const char* value : {"0", "-5", "1025", "9223372036854775807", "-9223372036854775808"}) {
    EXPECT_EQ(train_error({"--batch-size", value}), std::string("[--batch-size] must be in [1, 1024]: got ") + value);
  }
  train({"--batch-size", "1024"});
  EXPECT_EQ(batch_size_, 1024);
}

TEST_F(Options, RefusesALeadingZeroThatSomeReadAsOctal) {
  for (const char* value : {"010", "-010", "00"}) {
    EXPECT_EQ(train_error({"--batch-size", value}),
              std::string("[--batch-size] must be a whole number: got \"") + value + "\"");
  }
}

TEST_F(Options, ReadsNumbersStrictly) {
  for (const char* value :
       {"nan", "NaN", "inf", "-inf", "infinity", "1e999", "0x1p3", "1.5x", "", "1,5", "--dropout"}) {
    EXPECT_EQ(train_error({"--lr", value}), std::string("[--lr] must be a finite number: got \"") + value + "\"");
    EXPECT_EQ(lr_, 0.004) << value;
  }
}

TEST_F(Options, ChecksTheRangeOfNumbers) {
  EXPECT_EQ(train_error({"--lr", "-1"}), "[--lr] must be in [0, 10]: got -1");
  EXPECT_EQ(train_error({"--dropout", "1.5"}), "[--dropout] must be in [0, 1]: got 1.5");
  EXPECT_EQ(train_error({"--dropout=-0.1"}), "[--dropout] must be in [0, 1]: got -0.1");
}

TEST_F(Options, NamesTheOptionAsItWasTyped) {
  EXPECT_EQ(train_error({"-rnn_size", "foo"}), "[-rnn_size] must be a whole number: got \"foo\"");
  EXPECT_EQ(train_error({"--learning_rate=nan"}), "[--learning_rate] must be a finite number: got \"nan\"");
}

TEST_F(Options, SuggestsTheNearestName) {
  EXPECT_EQ(train_error({"--batch-sise", "5"}), "[--batch-sise] no such option; did you mean --batch-size?");
  EXPECT_EQ(train_error({"-rnnsize=5"}), "[-rnnsize] no such option; did you mean --rnn-size?");
  EXPECT_EQ(train_error({"--completely-different"}), "[--completely-different] no such option; --help lists them");
}

TEST_F(Options, SuggestsNothingThatBeginsOtherwise) {
  EXPECT_EQ(train_error({"--rate", "5"}), "[--rate] no such option; --help lists them");  // not --lr, --seed, ...
}

TEST_F(Options, AdvisesWhoComesFromAnotherProgram) {
  for (const std::string typed : {"-data_dir", "--data-dir", "--data_dir"}) {
    EXPECT_EQ(train_error({typed, "data"}), "[" + typed + "] no such option: use --text FILE");
  }
}

TEST_F(Options, TellsTheCheckWhatWasGiven) {
  train({"-rnn_size", "5", "--lr=1"});
  EXPECT_EQ(given_, (Given{{"hidden_size", "-rnn_size"}, {"lr", "--lr"}}));
}

TEST_F(Options, RefusesTwoFieldsOfOneName) {
  const auto error_with = [this](const Field& second) -> std::string {
    Program program = program_;
    program.commands.front().groups.push_back({"Layer", {second}});
    try {
      parse_command_line(program, {"train", "--lr", "1"});
    } catch (const ValueError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_with({.name = "lr", .target = &min_lr_, .help = "of the layer"}),
            "[--lr] must be the name of one option: got fields lr and lr");
  EXPECT_EQ(error_with({.name = "width", .target = &seed_, .help = "", .aliases = {"rnn_size"}}),
            "[--rnn-size] must be the name of one option: got fields hidden_size and width");
}

TEST_F(Options, RefusesAMissingOrSecondValue) {
  EXPECT_EQ(train_error({"--lr"}), "[--lr] needs a value: got none");
  EXPECT_EQ(train_error({"--rnn_size", "5", "--hidden", "6"}), "[--hidden] must be given once: got it again");
  EXPECT_EQ(train_error({"--json=yes"}), "[--json] must be true or false: got \"yes\"");
  EXPECT_EQ(train_error({"--no-json=true"}), "[--no-json] takes no value: got \"--no-json=true\"");
}

TEST_F(Options, ChecksChoices) {
  EXPECT_EQ(train_error({"--model", "lsmt"}), "[--model] must be one of rnn, lstm: got \"lsmt\"; did you mean lstm?");
  EXPECT_EQ(train_error({"--model", ""}), "[--model] must be one of rnn, lstm: got \"\"");
}

TEST_F(Options, LeavesTextAsItIs) {
  for (const char* value : {"", " ", "--lr", "-x", "[a,b]", "{}", "a=b", "日 é", "\"quoted\"", "--", "%%"}) {
    train({"--prompt", value});
    EXPECT_EQ(prompt_, value);
    train({std::string("--prompt=") + value});
    EXPECT_EQ(prompt_, value);
  }
}

TEST_F(Options, ChecksRulesBetweenOptions) {
  EXPECT_EQ(train_error({"--hidden", "13"}), "[--hidden-size] must not be 13: got 13");
}

TEST_F(Options, TakesPositionals) {
  const Request request = parse({"info", "train"});
  EXPECT_EQ(request.command->name, "info");
  EXPECT_EQ(checkpoint_, "train");
  EXPECT_NE(error_of({"info"}).find("checkpoint is required"), std::string::npos) << error_of({"info"});
  EXPECT_NE(error_of({"info", "a", "b"}).find("not expected: b"), std::string::npos) << error_of({"info", "a", "b"});
}

TEST_F(Options, NamesTheCommands) {
  EXPECT_EQ(error_of({}), "[command] must be one of train, info: got none");
  EXPECT_EQ(error_of({"trian"}), "[command] must be one of train, info: got \"trian\"; did you mean train?");
}

TEST_F(Options, SuggestsWhatSharesAWordOrBeginsWithASlip) {
  EXPECT_EQ(train_error({"--hiden-size", "5"}), "[--hiden-size] no such option; did you mean --hidden-size?");
  EXPECT_EQ(train_error({"--lerning-rate", "5"}), "[--lerning-rate] no such option; did you mean --learning-rate?");
  EXPECT_EQ(train_error({"--lr_rate", "5"}), "[--lr_rate] no such option; did you mean --lr?");
  EXPECT_EQ(train_error({"--batch", "5"}), "[--batch] no such option; did you mean --batch-size?");
  for (const std::string slip : {"ropout", "sdropout", "fropout", "rdopout"}) {
    EXPECT_EQ(train_error({"--" + slip, "5"}), "[--" + slip + "] no such option; did you mean --dropout?");
  }
}

TEST_F(Options, ReportsAllWrongNamesAtOnce) {
  EXPECT_EQ(train_error({"--sede", "1", "-data_dir", "x", "--lr", "1", "--device=cuda", "--lr=2"}),
            "[--sede] no such option; did you mean --seed?; [-data_dir] no such option: use --text FILE; "
            "[--device] must be cpu; [--lr] must be given once: got it again");
}

TEST_F(Options, TakesWhatAsksForWhatHappensAnyway) {
  const Request request = train({"--device=cpu", "-gpuid", "-1", "--backend", "nccl", "--device", "None", "--lr", "1"});
  ASSERT_NE(request.command, nullptr);
  EXPECT_EQ(request.notice,
            "note: without effect here: --device=cpu, -gpuid -1, --backend nccl (there is one), --device None");
  EXPECT_EQ(lr_, 1);
  EXPECT_EQ(train({}).notice, "");
  EXPECT_EQ(train_error({"-gpuid", "0"}), "[-gpuid] must be -1");
  EXPECT_EQ(train_error({"--device"}), "[--device] must be cpu");
  config_ = Config("c.json", R"({"device": "cpu", "gpuid": -1})");
  EXPECT_EQ(train({}).notice, "note: without effect here: c.json: device \"cpu\", c.json: gpuid -1");
}

TEST_F(Options, HelpFitsIntoTheTerminal) {
  for (const int64_t width : {50, 80, 120}) {
    for (const Arguments& arguments : {Arguments{"train", "--help"}, {"info", "--help"}, {"--help"}}) {
      std::istringstream lines(parse_command_line(program_, arguments, width).text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(std::ssize(line), width) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
      }
    }
  }
  const std::string text = parse_command_line(program_, {"train", "--help"}, 60).text;
  EXPECT_NE(text.find("  --hidden-size INT       width (default 128; also --hidden,\n"
                      "                          --rnn_size)\n"),
            std::string::npos)
      << text;
}

TEST_F(Options, HelpShowsGroupsAndDefaults) {
  const Request request = train({"--help"});
  EXPECT_EQ(request.command, nullptr);
  for (const char* part : {"Training:", "Model:", "--batch-size INT", "rows (default 32)",
                           "kind: rnn|lstm (default rnn)", "also --hidden, --rnn_size", "--gate BOOL", "--json  "}) {
    EXPECT_NE(request.text.find(part), std::string::npos) << part << "\n" << request.text;
  }
  EXPECT_EQ(request.text.find("nan"), std::string::npos) << "an unset default has nothing to show";
  EXPECT_NE(parse({"--help"}).text.find("info"), std::string::npos);
  EXPECT_EQ(parse({"-h"}).text, parse({"--help"}).text);
}

TEST_F(Options, VersionTellsWhatComputes) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--version"}, {"train", "--version"}}) {
    const std::string text = parse(arguments).text;
    EXPECT_EQ(text.substr(0, 20), "program of Carousel ");
    EXPECT_NE(text.find("threads"), std::string::npos) << text;
  }
}

TEST_F(Options, PeeksAtOne) {
  const Field model{.name = "model", .target = &model_, .help = "kind", .aliases = {"model_type"}};
  EXPECT_EQ(peek_option({"train"}, {}, model), "rnn");
  EXPECT_EQ(peek_option({"train", "--model", "lstm"}, {}, model), "lstm");
  EXPECT_EQ(peek_option({"train", "-model_type=gru"}, {}, model), "gru");
  EXPECT_EQ(peek_option({"train", "--model"}, {}, model), "rnn");
  const Config config("c.json", R"({"model-type": "ssm"})");
  EXPECT_EQ(peek_option({"train"}, config, model), "ssm");
  EXPECT_EQ(peek_option({"train", "--model", "lstm"}, config, model), "lstm");
  EXPECT_EQ(peek_option({}, Config("c.json", R"({"model": 5})"), model), "rnn") << "for the parser to complain about";
}

TEST(RunProgram, ReturnsTheExitCode) {
  int code = 0;
  const auto run = [&code](std::vector<const char*> arguments) {
    const Command command{.name = "go", .help = "", .run = [&code]() -> int {
                            check<IoError>(code != 1, "go", "broken: got {}", code);
                            return code;
                          }};
    arguments.insert(arguments.begin(), "program");
    return run_program({.name = "program", .help = "", .commands = {command}}, static_cast<int>(arguments.size()),
                       const_cast<char**>(arguments.data()));
  };
  EXPECT_EQ(run({"go"}), 0);
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(run({"go", "--what"}), 2);
  EXPECT_EQ(run({}), 2);
  code = 1;
  EXPECT_EQ(run({"go"}), 1);
  code = 130;
  EXPECT_EQ(run({"go"}), 130);
}

}  // namespace
}  // namespace carousel::examples
