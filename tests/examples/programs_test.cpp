#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "common/stories.h"
#include "run_program.h"
#include "temporary_folder.h"

namespace carousel::examples {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StoriesProgram, PrintsTextAndAnswers) {
  const TemporaryFolder folder;
  const std::string answers = folder.path("answers.jsonl");
  const ProgramResult result =
      run_built("stories", {"--bytes", "5000", "--distance", "300", "--seed", "9", "--answers", answers});
  const Stories expected = make_stories({.bytes = 5000, .distance = 300, .seed = 9});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, expected.text);
  EXPECT_EQ(contents(answers), answers_to_json_lines(expected));
}

TEST(StoriesProgram, RefusesWhatItCannotDo) {
  EXPECT_EQ(run_built("stories", {"--bytes", "0"}).err, "stories: [--bytes] must be in [1, 10000000000]: got 0\n");
  EXPECT_EQ(run_built("stories", {"--distance=-1"}).exit_code, 2);
  const ProgramResult result = run_built("stories", {"--answers", "/nowhere/answers"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "stories: [stories] cannot write /nowhere/answers: No such file or directory\n");
}

// The share of words that `reverse` got right, in its last line.
double reversed_with(const std::string& attention) {
  const ProgramResult result =
      run_built("reverse", {"--attention", attention, "--model", "rnn", "--letters", "8", "--longest", "8",
                            "--hidden-size", "32", "--embedding-size", "16", "--steps", "500", "--lr", "0.01"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string last = "\nreversed: ";
  const size_t at = result.out.find(last);
  EXPECT_NE(at, std::string::npos) << result.out;
  return at == std::string::npos ? 0 : std::stod(result.out.substr(at + last.size()));
}

TEST(Reverse, AttentionBeatsTheFixedVector) {
  EXPECT_GE(reversed_with("additive"), 90);  // 100 when this was written, with five seeds
  EXPECT_LE(reversed_with("none"), 80);      // 57 to 67
}

TEST(Reverse, RefusesWhatItCannotDo) {
  const ProgramResult result = run_built("reverse", {"--attention", "dot"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("[--attention] must be one of none, additive"), std::string::npos) << result.err;
}

TEST(FirstSteps, IsTheProgramOfTheReadme) {
  const std::string source = std::string(CAROUSEL_SOURCE);
  const std::string program = contents(source + "/examples/first_steps.cpp");
  const std::string readme = contents(source + "/README.md");
  const std::string code = program.substr(program.find("#include"));  // what follows the comment at the top
  EXPECT_NE(readme.find("```cpp\n" + code + "```\n"), std::string::npos);
}

TEST(Readme, ShowsHowToLookAtGradients) {
  const std::string source = std::string(CAROUSEL_SOURCE);
  const std::string test = contents(source + "/tests/examples/looking_at_gradients_test.cpp");
  const std::string begin = "// README begins\n", end = "  // README ends\n";
  const size_t at = test.find(begin) + begin.size();
  std::istringstream lines(test.substr(at, test.find(end) - at));
  std::string code;
  for (std::string line; std::getline(lines, line);) code += line.substr(2) + "\n";  // without the function's indent
  EXPECT_NE(contents(source + "/README.md").find("```cpp\n" + code + "```\n"), std::string::npos) << code;
}

TEST(FirstSteps, Learns) {
  const TemporaryFolder folder;
  const std::string text = folder.path("stories.txt");
  std::ofstream(text, std::ios::binary) << make_stories().text;
  const ProgramResult result = run_built("first_steps", {text});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string last = "step 400: ";
  const size_t at = result.out.find(last);
  ASSERT_NE(at, std::string::npos) << result.out;
  EXPECT_LT(std::stod(result.out.substr(at + last.size())), 0.4);  // ln 128 = 4.85 at first; 0.25 when this was written
  EXPECT_GT(result.out.size(), at + 400) << "and tells a story";
}

}  // namespace
}  // namespace carousel::examples
