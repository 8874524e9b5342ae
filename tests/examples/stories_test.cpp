#include "common/stories.h"

#include <carousel/tensor/error.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace carousel::examples {
namespace {

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > i) words.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

TEST(Stories, AreTheSameEverywhere) {
  const Stories stories = make_stories({.bytes = 1'000'000, .distance = 100, .seed = 1});
  EXPECT_EQ(stories.text.size(), 1'000'100u);
  EXPECT_EQ(fnv1a(stories.text), 1308932960806014198u);  // the text itself is its own reference
}

TEST(Stories, AnotherSeedTellsOtherStories) {
  EXPECT_NE(make_stories({.bytes = 1000, .seed = 1}).text, make_stories({.bytes = 1000, .seed = 2}).text);
}

TEST(Stories, FewerBytesAreAPrefix) {
  const std::string text = make_stories({.bytes = 50'000}).text;
  const std::string beginning = make_stories({.bytes = 10'000}).text;
  EXPECT_GE(beginning.size(), 10'000u);
  EXPECT_EQ(beginning, text.substr(0, beginning.size()));
}

TEST(Stories, AnswersStandWhereTheySay) {
  const Stories stories = make_stories({.bytes = 200'000});
  ASSERT_GT(stories.answers.size(), 1000u);
  int64_t story = 0;
  for (const StoryAnswer& answer : stories.answers) {
    const auto at = [&](int64_t position) { return stories.text.substr(position, answer.word.size() + 1); };
    EXPECT_EQ(at(answer.first_mention).substr(0, answer.word.size()), answer.word);
    EXPECT_EQ(at(answer.position), std::string(answer.word) + ".");
    EXPECT_GE(answer.first_mention, story);
    story = static_cast<int64_t>(stories.text.find("\n\n", answer.position)) + 2;
    EXPECT_EQ(answer.position + static_cast<int64_t>(answer.word.size()) + 3, story) << "nothing follows the answer";
    EXPECT_EQ(std::count(answer.candidates->begin(), answer.candidates->end(), answer.word), 1);
  }
  EXPECT_EQ(story, static_cast<int64_t>(stories.text.size()));
}

TEST(Stories, NothingBetweenGivesTheAnswerAway) {
  const Stories stories = make_stories({.bytes = 300'000, .distance = 200});
  for (const StoryAnswer& answer : stories.answers) {
    const int64_t after = answer.first_mention + static_cast<int64_t>(answer.word.size());
    const std::string between = stories.text.substr(after, answer.position - after);
    for (const std::string_view word : words_of(between)) {
      EXPECT_EQ(std::count(answer.candidates->begin(), answer.candidates->end(), word), 0) << between;
    }
  }
}

TEST(Stories, CandidatesDifferInTheirFirstLetter) {
  for (const StoryAnswer& answer : make_stories({.bytes = 100'000}).answers) {
    std::set<char> letters;
    for (const std::string_view word : *answer.candidates) letters.insert(word.front());
    EXPECT_EQ(letters.size(), answer.candidates->size());
    EXPECT_EQ(answer.candidates->size(), 8u);
  }
}

TEST(Stories, DistanceIsAtLeastWhatWasAskedAndLessThanASentenceMore) {
  for (const int64_t distance : {100, 333, 1000}) {
    for (const StoryAnswer& answer : make_stories({.bytes = 100'000, .distance = distance}).answers) {
      const int64_t between = answer.position - answer.first_mention - static_cast<int64_t>(answer.word.size());
      EXPECT_GE(between, distance);
      EXPECT_LT(between, distance + 64);  // the longest sentence has 63 characters with its space
    }
  }
}

TEST(Stories, EveryCandidateIsEquallyLikely) {
  const Stories stories = make_stories({.bytes = 2'000'000});
  std::map<std::string_view, std::map<std::string_view, double>> counts;
  std::map<std::string_view, double> totals;
  for (const StoryAnswer& answer : stories.answers) {
    const std::string_view family = answer.candidates->front();
    counts[family][answer.word] += 1;
    totals[family] += 1;
  }
  ASSERT_EQ(counts.size(), 4u);  // places, colours, names of girls and of boys
  for (const auto& [family, words] : counts) {
    double chi_squared = 0;
    const double expected = totals[family] / 8;
    for (const auto& [word, count] : words) chi_squared += (count - expected) * (count - expected) / expected;
    EXPECT_EQ(words.size(), 8u);
    EXPECT_LT(chi_squared, 29.9) << family;  // 7 degrees of freedom, p = 1e-4
  }
}

TEST(Stories, AMegabyteTakesWellUnderASecond) {
  const auto start = std::chrono::steady_clock::now();
  make_stories({.bytes = 1'000'000});
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(700));  // 10 to 50 ms; sanitizers slower
}

TEST(Stories, RefuseImpossibleSizes) {
  const auto error_of = [](const StoryOptions& options) -> std::string {
    try {
      make_stories(options);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of({.bytes = 0}), "[stories] bytes must be positive: got 0");
  EXPECT_EQ(error_of({.distance = -1}), "[stories] distance must not be negative: got -1");
}

TEST(Stories, AnswersAreJsonLines) {
  const Stories stories = make_stories({.bytes = 1});
  const StoryAnswer& answer = stories.answers.at(0);
  const std::string lines = answers_to_json_lines(stories);
  EXPECT_EQ(lines.substr(0, lines.find(",\"candidates")),
            fmt::format(R"({{"kind":"{}","word":"{}","first_mention":{},"position":{})", answer.kind, answer.word,
                        answer.first_mention, answer.position));
  EXPECT_EQ(lines.substr(lines.size() - 4), "\"]}\n");
}

}  // namespace
}  // namespace carousel::examples
