// The picture of the losses that a run leaves, with a gnuplot of our own in its place: the suite needs none.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>

#include "char_lm_fixture.h"
#include "quiet_regex.h"

namespace carousel::examples {
namespace {

class LossPicture : public CharLm {
 protected:
  LossPicture() : path_(std::getenv("PATH")) {}
  ~LossPicture() override { setenv("PATH", path_.c_str(), 1); }

  // Lets the programs that are run find a `gnuplot` that is this script, or none.
  void have_gnuplot(const std::string& script) {
    const std::string tools = folder_.path("tools"), program = tools + "/gnuplot";
    std::filesystem::create_directory(tools);
    std::filesystem::remove(program);
    if (!script.empty()) {
      std::ofstream(program) << "#!/bin/sh\n" << script;
      chmod(program.c_str(), 0700);
    }
    setenv("PATH", (script.empty() ? tools : tools + ":/usr/bin:/bin").c_str(), 1);
  }
  std::string contents(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Two records and two validations.
  ProgramResult train_two(Arguments more = {}) {
    more.insert(more.end(), {"--eval-interval", "10"});
    return train(text_, more);
  }

  std::string path_;
};

TEST_F(LossPicture, ShowsTrainAndValidationBesideWhatTakesNoModel) {
  have_gnuplot("cat");  // gives back what it is told
  const ProgramResult result = train_two();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("loss curve: " + out_ + "/loss.svg and loss.png\n"), std::string::npos) << result.out;
  const std::string script = contents(out_ + "/loss.svg");
  EXPECT_TRUE(script.starts_with("set terminal svg ")) << script;
  EXPECT_TRUE(contents(out_ + "/loss.png").starts_with("set terminal pngcairo "));
  for (const char* name : {"train", "validation"}) {
    const json records = log();
    const char* key = std::string(name) == "train" ? "train_loss" : "val_loss";
    std::string block = "$" + std::string(name) + " << END\n";
    for (const json& record : records) {
      block += fmt::format("{} {}\n", record["step"].get<double>(), record[key].get<double>());
    }
    EXPECT_NE(script.find(block + "END\n"), std::string::npos) << block << script;
  }
  EXPECT_NE(script.find("title 'uniform'"), std::string::npos) << script;
  EXPECT_NE(script.find(", 2.5649"), std::string::npos) << "ln 13: " << script;
  EXPECT_TRUE(std::regex_search(script, std::regex(", 0\\.\\d+ with lines [^,]* title '[2-5]-gram'"))) << script;
}

TEST_F(LossPicture, LeavesOutWhatThereIsNot) {
  have_gnuplot("cat");
  ASSERT_EQ(train_two({"--split", "1"}).exit_code, 0);
  EXPECT_EQ(contents(out_ + "/loss.svg").find("validation"), std::string::npos);
  std::filesystem::remove_all(out_);
  const ProgramResult one = train(text_);  // one record is no curve
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.out.find("loss curve"), std::string::npos) << one.out;
  EXPECT_FALSE(std::filesystem::exists(out_ + "/loss.svg"));
}

TEST_F(LossPicture, IsNoReasonToFail) {
  const auto told = [this](const std::string& script) {
    have_gnuplot(script);
    const ProgramResult result = train_two();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* name : {"/loss.svg", "/loss.png", "/loss.svg.tmp", "/loss.png.tmp"}) {
      EXPECT_FALSE(std::filesystem::exists(out_ + name)) << name;
    }
    const size_t at = result.out.find("loss curve: ");
    return at == std::string::npos ? "" : result.out.substr(at, result.out.find('\n', at) - at);
  };
  EXPECT_EQ(told(""), "loss curve: none, gnuplot is not installed");
  EXPECT_EQ(told("exit 1"), "loss curve: none, gnuplot cannot draw it");
  EXPECT_EQ(told("echo half a picture; kill -9 $$"), "loss curve: none, gnuplot cannot draw it");
  EXPECT_EQ(told("true"), "loss curve: none, gnuplot cannot draw it") << "and writes nothing";
}

TEST_F(LossPicture, HoldsTheWholeRunAfterAResume) {
  have_gnuplot("cat");
  ASSERT_EQ(train_two({"--stop-after", "10"}).exit_code, 0);
  ASSERT_EQ(run({"train", "--resume", out_}).exit_code, 0);
  const std::string script = contents(out_ + "/loss.svg");
  EXPECT_NE(script.find("\n10 "), std::string::npos) << script;
  EXPECT_NE(script.find("\n20 "), std::string::npos) << script;
}

TEST_F(LossPicture, IsAPictureWhereGnuplotIsInstalled) {
  if (std::system("command -v gnuplot >/dev/null") != 0) return;
  ASSERT_EQ(train_two().exit_code, 0);
  EXPECT_TRUE(contents(out_ + "/loss.svg").starts_with("<?xml"));
  EXPECT_TRUE(contents(out_ + "/loss.png").starts_with("\x89PNG"));
}

}  // namespace
}  // namespace carousel::examples
