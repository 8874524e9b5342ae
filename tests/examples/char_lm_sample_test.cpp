// What `char_lm sample` writes, and what it does with prompts.
#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class Sampled : public CharLm {
 protected:
  ProgramResult sample(Arguments more) {
    more.insert(more.begin(), {"sample", out_});
    return run(more);
  }
  std::vector<json> records(Arguments more) {
    more.push_back("--json");
    std::vector<json> result;
    std::istringstream lines(sample(more).out);
    for (std::string line; std::getline(lines, line);) result.push_back(json::parse(line));
    return result;
  }
};

TEST_F(Sampled, PromptsOutsideAscii) {  // HD-21
  const std::string text = write("text.txt", repeated("naïve café – 日本\n", 2000));
  ASSERT_EQ(train(text, {"--steps", "5"}).exit_code, 0);
  EXPECT_EQ(info()["vocabulary_size"], 13);
  const ProgramResult result = sample({"--prompt", "café 日", "--length", "500"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("café 日")) << result.out;
  EXPECT_NO_THROW(json(result.out).dump()) << "is UTF-8";
}

TEST_F(Sampled, PromptsWithSymbolsThatTheModelDoesNotKnow) {  // HD-22
  const std::string text = write("text.txt", repeated("Helloworld!\n", 200));
  ASSERT_EQ(train(text, {"--steps", "5"}).exit_code, 0);
  EXPECT_EQ(sample({}).exit_code, 0);
  EXPECT_EQ(sample({"--prompt", ""}).exit_code, 0);
  const auto error = [this](const std::string& prompt) { return sample({"--prompt", prompt}).err; };
  EXPECT_NE(error(" ").find("got U+0020 ' ' at position 0"), std::string::npos) << error(" ");
  EXPECT_NE(error("Hello world").find("got U+0020 ' ' at position 5"), std::string::npos);
  EXPECT_NE(error("Zürich").find("got U+005A 'Z' at position 0"), std::string::npos);
  EXPECT_EQ(sample({"--prompt", "Zürich"}).exit_code, 1);

  ProgramResult result = sample({"--prompt", "Hello world", "--unknown", "skip"});
  EXPECT_TRUE(result.out.starts_with("Helloworld")) << result.out;
  EXPECT_NE(result.err.find("note: the model does not know U+0020 ' ' at position 5: left out\n"), std::string::npos)
      << result.err;
  result = sample({"--prompt", "hÉllò W", "--unknown", "nearest"});
  EXPECT_TRUE(result.out.starts_with("Hellow")) << result.out;
  EXPECT_NE(result.err.find("U+00C9 'É' at position 1: 'e' instead\n"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("U+0020 ' ' at position 5: left out\n"), std::string::npos) << result.err;
}

TEST_F(Sampled, PromptsFromFiles) {
  ASSERT_EQ(train(text_).exit_code, 0);
  const std::string file = write("prompt.txt", "the mat\nsat");
  const std::string typed = sample({"--prompt", "the mat\nsat"}).out;
  EXPECT_EQ(sample({"--prompt-file", file}).out, typed);
  EXPECT_EQ(sample({"--start", "FILE:" + file}).out, typed);
  EXPECT_NE(sample({"--prompt-file", "nosuch"}).err.find("no such file: got nosuch"), std::string::npos);
  EXPECT_EQ(sample({"--prompt-file", file, "--prompt", "the"}).exit_code, 1);
}

TEST_F(Sampled, SeveralTextsCountTheirSeedsOn) {
  ASSERT_EQ(train(text_, {"--steps", "100"}).exit_code, 0);
  const std::vector<json> three = records({"--num_samples", "3", "--seed", "7", "--length", "40"});
  ASSERT_EQ(three.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(three[i]["seed"], 7 + i);
    const std::string seed = std::to_string(7 + i);
    EXPECT_EQ(records({"--seed", seed, "--length", "40"}).front()["text"], three[i]["text"]) << i;
  }
  EXPECT_NE(three[0]["text"], three[1]["text"]);
  const std::string plain = sample({"--samples", "2", "--seed", "7", "--length", "40", "--prompt", "the"}).out;
  EXPECT_EQ(plain.find("the"), 0U);
  EXPECT_NE(plain.find("\n---------------\nthe"), std::string::npos) << plain;
}

TEST_F(Sampled, EndsBeforeTheStopString) {
  ASSERT_EQ(train(text_, {"--steps", "300"}).exit_code, 0);
  const std::string whole = records({"--length", "200", "--temperature", "0.5"}).front()["text"];
  const std::string stop = whole.substr(50, 4);
  const std::string right = whole.substr(0, whole.find(stop));
  EXPECT_EQ(records({"--length", "200", "--temperature", "0.5", "--stop", stop}).front()["text"], right);
  const ProgramResult streamed = sample({"--length", "200", "--temperature", "0.5", "--stop", stop});
  EXPECT_EQ(streamed.out, right + (right.ends_with('\n') ? "" : "\n")) << "nothing of the stop string was shown";
}

TEST_F(Sampled, LogProbabilitiesAreThoseOfEachCharacter) {
  ASSERT_EQ(train(text_, {"--steps", "50"}).exit_code, 0);
  const json record = records({"--length", "30", "--logprobs"}).front();
  std::string joined;
  for (const json& token : record["tokens"]) {
    joined += token["token"];
    EXPECT_LT(token["logprob"], 0);
  }
  EXPECT_EQ(joined, record["text"]);
  EXPECT_EQ(sample({"--logprobs"}).exit_code, 2) << "they are part of the JSON";
}

TEST_F(Sampled, FiltersKeepTheLikeliest) {
  ASSERT_EQ(train(text_, {"--steps", "50"}).exit_code, 0);
  const std::string coldest = sample({"--temperature", "0"}).out;
  EXPECT_EQ(sample({"--topk", "1"}).out, coldest);
  EXPECT_EQ(sample({"--topp", "1e-6"}).out, coldest);
  EXPECT_EQ(sample({"--minp", "1"}).out, coldest);
  EXPECT_NE(sample({"--temperature", "0", "--repetition-penalty", "1.5"}).out, coldest);
  EXPECT_NE(sample({"--top-p", "1.5"}).err.find("[--top-p] must be in "), std::string::npos);
}

TEST_F(Sampled, SlidesPastTheBlock) {  // HD-29
  ASSERT_EQ(train(text_, {"--model", "gpt", "--heads", "2", "--embedding", "16", "--seq-length", "8"}).exit_code, 0);
  EXPECT_EQ(info()["context"], 8);
  for (const auto& [prompt, length] :
       {std::pair<std::string, int>("the c", 20), {"the cat ", 1}, {"the cat sat ", 3}}) {
    const json record = records({"--prompt", prompt, "--length", std::to_string(length), "--temperature", "0"}).front();
    EXPECT_EQ(record["text"].get<std::string>().size(), static_cast<size_t>(length)) << prompt;
  }
}

}  // namespace
}  // namespace carousel::examples
