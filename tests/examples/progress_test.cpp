// What a person sees of a run while it goes on.
#include "common/progress_line.h"

#include <limits>

#include "char_lm_fixture.h"
#include "quiet_regex.h"

namespace carousel::examples {
namespace {

constexpr ProgressFacts facts{
    .step = 150, .steps = 600, .loss = 1.2344, .grad_norm = 0.5, .lr = 4e-3, .tokens_per_s = 54321, .seconds_left = 33};

TEST(ProgressLine, ShowsABarAndAllFactsWhereThereIsRoom) {
  const std::string expected = "150/600  loss 1.234  33 s left  54321 tokens/s  norm 0.50  lr 4.0e-03";
  EXPECT_EQ(progress_line(facts, 120), "[#######-----------------------] " + expected);
  EXPECT_EQ(progress_line(facts, 81), "[##------] " + expected);
}

TEST(ProgressLine, LeavesOutWholeFactsThatDoNotFit) {
  EXPECT_EQ(progress_line(facts, 57), "[#####------------------] 150/600  loss 1.234  33 s left");
  EXPECT_EQ(progress_line(facts, 20), "150/600  loss 1.234");
  EXPECT_EQ(progress_line(facts, 19), "[##------] 150/600");
  EXPECT_EQ(progress_line(facts, 3), "");
  for (int64_t columns = 0; columns < 200; ++columns) {
    EXPECT_LE(std::ssize(progress_line(facts, columns)), std::max<int64_t>(columns - 1, 0)) << columns;
  }
}

TEST(ProgressLine, FillsTheBarAtTheEnd) {
  ProgressFacts end = facts;
  end.step = end.steps;
  EXPECT_EQ(progress_line(end, 81).substr(0, 10), "[########]");
}

TEST(ProgressLine, TellsTimesInRoundUnits) {
  EXPECT_EQ(time_text(0.2), "0 s");
  EXPECT_EQ(time_text(99), "99 s");
  EXPECT_EQ(time_text(100), "2 min");
  EXPECT_EQ(time_text(5900), "98 min");
  EXPECT_EQ(time_text(9000), "2.5 h");
  EXPECT_EQ(time_text(std::numeric_limits<double>::quiet_NaN()), "?");
  EXPECT_EQ(time_text(std::numeric_limits<double>::infinity()), "?");
}

class Shown : public CharLm {};

TEST_F(Shown, TheBarKeepsToTheWidthOfTheTerminalAsItIsNow) {
  const ProgramResult result =
      run_on_terminal("char_lm",
                      {"train", "--text", text_, "--out", out_, "--hidden", "16", "--batch-size", "4", "--steps",
                       "10000000", "--time-limit", "2s", "--log-interval", "10000000", "--eval-interval", "10000000"},
                      90, 40);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> bars;
  const std::regex bar("\\r([^\\r\\n]*/10000000 [^\\r\\n]*)\x1b\\[K");
  for (auto i = std::sregex_iterator(result.out.begin(), result.out.end(), bar); i != std::sregex_iterator(); ++i) {
    bars.push_back((*i)[1]);
  }
  ASSERT_GE(bars.size(), 4U) << result.out;
  EXPECT_EQ(bars.front().front(), '[');
  EXPECT_NE(bars.front().find(" tokens/s  norm "), std::string::npos) << bars.front();
  EXPECT_TRUE(std::regex_search(bars.front(), std::regex("loss \\d\\.\\d+  [0-2] s left"))) << bars.front();
  for (const std::string& line : bars) EXPECT_LE(line.size(), 89U);
  EXPECT_LE(bars.back().size(), 39U) << bars.back();
  EXPECT_NE(result.out.find("\x1b[Kstopped by --time-limit"), std::string::npos) << "on a line of its own";
}

TEST_F(Shown, PlainLinesHaveTheSameFacts) {
  const ProgramResult result = train(text_, {"--log-interval", "5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(result.out.find('\r'), std::string::npos);
  const std::regex line(
      "step 5/20  train \\d\\.\\d{4} nats \\(\\d\\.\\d{3} bits\\)  \\d+ tokens/s  norm \\d+\\.\\d\\d  lr "
      "\\d\\.\\d\\de-\\d\\d  "
      "\\d+\\.\\d s, \\d+ s left\\n");
  EXPECT_TRUE(std::regex_search(result.out, line)) << result.out;
  const std::regex validated(
      "step 20/20  train [^\\n]* bits\\)  validation \\d\\.\\d{4} nats \\(\\d\\.\\d{3} bits\\)  ");
  EXPECT_TRUE(std::regex_search(result.out, validated)) << result.out;
}

}  // namespace
}  // namespace carousel::examples
