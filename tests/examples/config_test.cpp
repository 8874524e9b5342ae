#include "common/config.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/options.h"
#include "temporary_folder.h"

namespace carousel::examples {
namespace {

class ConfigFile : public ::testing::Test {
 protected:
  ConfigFile() {
    const Command train{
        .name = "train",
        .help = "Trains",
        .groups = {{"All",
                    {{.name = "batch_size", .target = &batch_size_, .help = "", .minimum = 1, .maximum = 1024},
                     {.name = "lr", .target = &lr_, .help = "", .minimum = 0, .aliases = {"learning_rate"}},
                     {.name = "min_lr", .target = &min_lr_, .help = "", .minimum = 0},
                     {.name = "model", .target = &model_, .help = "", .choices = {"rnn", "lstm"}},
                     {.name = "gate", .target = &gate_, .help = ""}}}},
        .strangers = {{"data_dir", {.advice = "no such option: use --text FILE"}}},
        .config = &config_,
        .check = [this](const Given& given) { given_ = given; }};
    program_ = {.name = "program", .help = "", .commands = {train}};
  }

  void parse(const std::string& json, std::vector<std::string> arguments = {}) {
    config_ = Config("c.json", json);
    arguments.insert(arguments.begin(), "train");
    parse_command_line(program_, arguments);
  }
  std::string error_of(const std::string& json, const std::vector<std::string>& arguments = {}) {
    try {
      parse(json, arguments);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }

  int64_t batch_size_ = 32;
  double lr_ = 0.004, min_lr_ = std::numeric_limits<double>::quiet_NaN();
  bool gate_ = true;
  std::string model_ = "rnn";
  Given given_;
  Config config_;
  Program program_;
};

TEST_F(ConfigFile, SetsOptionsInEverySpelling) {
  parse(R"({"batch_size": 50, "learning-rate": 2e-3, "min_lr": 0, "model": "lstm", "gate": false})");
  EXPECT_EQ(batch_size_, 50);
  EXPECT_EQ(lr_, 2e-3);
  EXPECT_EQ(min_lr_, 0) << "a whole number is a number";
  EXPECT_EQ(model_, "lstm");
  EXPECT_FALSE(gate_);
  EXPECT_EQ(given_.at("lr"), "c.json: learning-rate");
  EXPECT_FALSE(is_typed(given_, "lr"));
  parse("{}");
  EXPECT_TRUE(given_.empty());
}

TEST_F(ConfigFile, IsBeatenByTheCommandLine) {
  parse(R"({"batch_size": 50, "learning_rate": 2e-3})", {"--lr", "1", "--gate"});
  EXPECT_EQ(batch_size_, 50);
  EXPECT_EQ(lr_, 1);
  EXPECT_EQ(given_.at("lr"), "--lr");
  EXPECT_TRUE(is_typed(given_, "lr"));
}

TEST_F(ConfigFile, RefusesValuesOfAnotherType) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"batch_size": "50"})", "[c.json: batch_size] must be a whole number: got \"50\""},
      {R"({"batch_size": 50.0})", "[c.json: batch_size] must be a whole number: got \"50.0\""},
      {R"({"batch_size": true})", "[c.json: batch_size] must be a whole number: got true"},
      {R"({"batch_size": [50]})", "[c.json: batch_size] must be a whole number: got [50]"},
      {R"({"batch_size": 18446744073709551615})",
       "[c.json: batch_size] must be a whole number: got \"18446744073709551615\""},
      {R"({"batch_size": 0})", "[c.json: batch_size] must be in [1, 1024]: got 0"},
      {R"({"learning_rate": null})", "[c.json: learning_rate] must be a finite number: got null"},
      {R"({"lr": -1})", "[c.json: lr] must be in [0, inf]: got -1"},
      {R"({"gate": 1})", "[c.json: gate] must be true or false: got 1"},
      {R"({"gate": "false"})", "[c.json: gate] must be true or false: got \"false\""},
      {R"({"model": 3})", "[c.json: model] must be a text in quotes: got 3"},
      {R"({"model": {"kind": "rnn"}})", "[c.json: model] must be a text in quotes: got {\"kind\":\"rnn\"}"},
      {R"({"model": "lsmt"})", "[c.json: model] must be one of rnn, lstm: got \"lsmt\"; did you mean lstm?"}};
  for (const auto& [json, error] : wrong) EXPECT_EQ(error_of(json), error);
  EXPECT_EQ(error_of(R"({"batch_size": "50"})", {"--batch-size", "5"}), wrong.front().second)
      << "though the command line beats it";
}

TEST_F(ConfigFile, NamesAllUnknownKeysWithFileAndValue) {
  EXPECT_EQ(error_of(R"({"lerning_rate": 0.1, "data_dir": "x", "zzz": [1], "": 2})"),
            "[c.json: lerning_rate] no such option: got 0.1; did you mean learning_rate?; "
            "[c.json: data_dir] no such option: use --text FILE; [c.json: zzz] no such option: got [1]; "
            "[c.json: ] no such option: got 2");
}

TEST_F(ConfigFile, RefusesTwoSpellingsAndTwoValues) {
  EXPECT_EQ(error_of(R"({"lr": 1, "learning_rate": 2})"),
            "[c.json: learning_rate] must be given once: got c.json: lr too");
  EXPECT_EQ(error_of(R"({"lr": 1, "lr": 2})"), "[c.json: lr] must be given once: got it again");
  EXPECT_EQ(error_of(R"({"config": "d.json"})"), "[c.json: config] must not stand in a configuration file itself");
}

TEST_F(ConfigFile, RefusesWhatIsNoObject) {
  EXPECT_EQ(error_of("[1, 2]"), "[c.json] must hold one JSON object: got [1,2]");
  EXPECT_EQ(error_of("{\n\"lr\": 1,\n\"batch_size\" 5\n}"), "[c.json] must hold one JSON object: line 3 is not JSON");
  EXPECT_EQ(error_of(""), "[c.json] must hold one JSON object: line 1 is not JSON");
  EXPECT_EQ(error_of("{} {}"), "[c.json] must hold one JSON object: line 1 is not JSON");
  EXPECT_EQ(error_of("{\"lr\": 1e999}"), "[c.json] must hold one JSON object with numbers of 64 bits");
  EXPECT_EQ(error_of("{\"model\": \"\xff\"}"), "[c.json] must hold one JSON object: line 1 is not JSON");
  const std::string nested = "[c.json] must hold one JSON object in which nothing is nested";
  EXPECT_EQ(error_of(std::string(100000, '[')), nested);
  EXPECT_EQ(error_of(std::string(500000, '[') + std::string(500000, ']')), nested);
  EXPECT_EQ(error_of("{\"lr\": " + std::string(400000, '[') + std::string(400000, ']') + "}"), nested);
}

TEST_F(ConfigFile, RefusesKeysWithoutEndAtOnce) {
  std::string many = "{", within = "{\"lr\": {";
  for (int i = 0; i < 80000; ++i) {
    const std::string entry = (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    many += entry;
    within += entry;
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of(many + "}"), "[c.json] must hold at most 1000 keys: got more");
  EXPECT_EQ(error_of(within + "}}"), "[c.json] must hold at most 1000 keys: got more");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << "a second each";
}

TEST_F(ConfigFile, IsAFileThatCanBeRead) {
  const TemporaryFolder folder;
  const auto error = [](const std::string& path) -> std::string {
    try {
      read_config(path);
    } catch (const IoError& failure) {
      return failure.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(folder.path("none")), "[--config] no such file: got " + folder.path("none"));
  EXPECT_EQ(error(folder.path("")), "[--config] this is a folder: got " + folder.path(""));
  EXPECT_EQ(error("/dev/zero"), "[--config] must have at most 1048576 bytes: /dev/zero has more");
  std::ofstream(folder.path("c.json")) << R"({"lr": 1})";
  EXPECT_EQ(read_config(folder.path("c.json")).entries().front().key, "lr");
}

TEST_F(ConfigFile, IsWrittenAsItIsRead) {
  batch_size_ = 7;
  lr_ = 0.1 + 0.2;  // needs all its digits
  model_ = "lstm";
  gate_ = false;
  const std::string text = to_config(program_.commands.front().groups.front().fields);
  EXPECT_EQ(text.find("min_lr"), std::string::npos) << "NaN: follows from others";
  batch_size_ = 1;
  lr_ = 0;
  model_ = "rnn";
  gate_ = true;
  parse(text);
  EXPECT_EQ(batch_size_, 7);
  EXPECT_EQ(lr_, 0.1 + 0.2);
  EXPECT_EQ(model_, "lstm");
  EXPECT_FALSE(gate_);
}

}  // namespace
}  // namespace carousel::examples
