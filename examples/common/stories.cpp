#include "common/stories.h"

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/random.h>

#include <fmt/format.h>

#include <map>

namespace carousel::examples {

namespace {

using Words = std::vector<std::string_view>;
using Grammar = std::map<std::string_view, Words>;

// What there is to remember. Within a kind every word has its own first letter.
const Words girls = {"Anna", "Clara", "Ella", "Grace", "Lucy", "Mia", "Rosa", "Vera"};
const Words boys = {"Ben", "David", "Felix", "Hugo", "Jack", "Oscar", "Tom", "Will"};
const Words places = {"basket", "cupboard", "drawer", "jar", "kettle", "pocket", "shed", "trunk"};
const Words colours = {"blue", "green", "orange", "purple", "red", "silver", "white", "yellow"};

// A word in braces is a rule of the grammar, or one of the story's own words: {name}, {she}, {answer}, ... No sentence
// of `filler` may hold a word that could be an answer.
const Grammar grammar = {
    {"place opening", {"{name} hid a {thing} in the {answer}.", "One day {name} put a {thing} into the {answer}."}},
    {"place closing",
     {"In the evening {name} looked for the {thing}. It was in the {answer}.",
      "At last {she} wanted the {thing} again. {She} went to open the {answer}."}},
    {"colour opening", {"{name} had a {thing} and it was {answer}.", "{name} found a {thing} that was {answer}."}},
    {"colour closing",
     {"At night {name} dreamed of the {thing}. In the dream it was {answer}.",
      "Then somebody asked about the {thing}. {She} said that it was {answer}."}},
    {"name opening",
     {"Once there was a {girl} called {answer}.", "This is a story about a {girl}. They called {them} {answer}."}},
    {"name closing",
     {"A stranger asked who {she} was. The {girl} said: I am {answer}.",
      "At home {her} mother stood at the door. She called: Come in, {answer}."}},
    {"filler",
     {"{She} {walked} to the {market}.", "{She} {walked} {along} the {market}.", "{The weather}.",
      "{She} met {a friend} and they {talked}.", "{She} bought {some bread} and {went on}.",
      "{An animal} {slept} {along} the {market}.", "{She} {talked} with {a friend}.", "Then {she} {went on}."}},
    {"walked", {"walked", "ran", "hurried", "went", "came"}},
    {"market", {"market", "river", "harbour", "mill", "bridge", "garden", "station", "old wall", "village", "lake"}},
    {"along", {"along", "behind", "near", "across"}},
    {"The weather",
     {"The sun was shining", "It began to rain", "A cold wind came up", "The clouds were low", "The air was warm",
      "Soon it was noon", "The bells rang", "Some snow fell"}},
    {"a friend", {"an old man", "a farmer", "a teacher", "an aunt", "a sailor", "a baker", "two children"}},
    {"talked", {"talked", "laughed", "sang", "talked for a while", "played a game", "drank tea"}},
    {"some bread", {"some bread", "a cake", "three apples", "a newspaper", "some cheese", "a hat"}},
    {"went on", {"went on", "sat down", "ate a little", "had a rest", "took a long way", "looked at the sky"}},
    {"An animal", {"A dog", "A cat", "A goose", "An owl", "A little fox", "A horse"}},
    {"slept", {"slept", "waited", "ran", "was lying", "was playing"}},
};
const Words things = {"ball", "book", "coin", "doll", "key", "kite", "map", "ring", "spoon", "whistle"};

// Numbers of our own making: the standard library's distributions differ between platforms.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  std::string_view pick(const Words& words) {
    const uint64_t draw = Rng::block(seed_, counter_++)[0];
    return words[(draw * words.size()) >> 32];
  }

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

struct Kind {
  std::string_view name;
  const Words* candidates;
};

class StoryTeller {
 public:
  explicit StoryTeller(const StoryOptions& options) : dice_(options.seed), distance_(options.distance) {}

  void tell(Stories& stories) {
    cast();
    std::string& text = stories.text;
    const int64_t mention = append("opening", text);
    std::string closing;
    const int64_t lead = append("closing", closing);
    const int64_t end_of_mention = mention + static_cast<int64_t>(answer_.size());
    while (static_cast<int64_t>(text.size()) + 1 + lead - end_of_mention < distance_) {
      text += ' ';
      expand("filler", text);
    }
    text += ' ';
    stories.answers.push_back(
        {kind_.name, answer_, mention, static_cast<int64_t>(text.size()) + lead, kind_.candidates});
    text += closing + "\n\n";
  }

 private:
  void cast() {
    const bool girl = dice_.pick({"girl", "boy"}) == "girl";
    const Words& names = girl ? girls : boys;
    const std::string_view kind = dice_.pick({"name", "place", "colour"});
    kind_ = {kind, kind == "name" ? &names : kind == "place" ? &places : &colours};
    answer_ = dice_.pick(*kind_.candidates);
    const std::string_view thing = dice_.pick(things);
    own_words_ = {{"name", dice_.pick(names)},
                  {"girl", girl ? "girl" : "boy"},
                  {"she", girl ? "she" : "he"},
                  {"She", girl ? "She" : "He"},
                  {"her", girl ? "her" : "his"},
                  {"them", girl ? "her" : "him"},
                  {"thing", thing},
                  {"answer", answer_}};
  }

  // Appends the kind's sentence; returns where in `text` the answer begins.
  int64_t append(std::string_view part, std::string& text) {
    expand(fmt::format("{} {}", kind_.name, part), text);
    return answer_at_;
  }

  void expand(std::string_view rule, std::string& text) {
    if (rule == "answer") answer_at_ = static_cast<int64_t>(text.size());
    const auto own = own_words_.find(rule);
    write(own != own_words_.end() ? own->second : dice_.pick(grammar.at(rule)), text);
  }

  void write(std::string_view sentence, std::string& text) {
    while (!sentence.empty()) {
      const size_t open = sentence.find('{');
      text += sentence.substr(0, open);
      if (open == std::string_view::npos) return;
      const size_t close = sentence.find('}', open);
      expand(sentence.substr(open + 1, close - open - 1), text);
      sentence.remove_prefix(close + 1);
    }
  }

  Dice dice_;
  int64_t distance_;
  Kind kind_{};
  std::string_view answer_;
  std::map<std::string_view, std::string_view> own_words_;
  int64_t answer_at_ = 0;
};

}  // namespace

Stories make_stories(const StoryOptions& options) {
  check<ValueError>(options.bytes > 0, "stories", "bytes must be positive: got {}", options.bytes);
  check<ValueError>(options.distance >= 0, "stories", "distance must not be negative: got {}", options.distance);
  Stories stories;
  StoryTeller teller(options);
  while (static_cast<int64_t>(stories.text.size()) < options.bytes) teller.tell(stories);
  return stories;
}

std::string answers_to_json_lines(const Stories& stories) {
  std::string lines;
  for (const StoryAnswer& answer : stories.answers) {  // plain words: nothing to escape
    const std::vector<std::string> candidates(answer.candidates->begin(), answer.candidates->end());
    lines += fmt::format(R"({{"kind":"{}","word":"{}","first_mention":{},"position":{},"candidates":["{}"]}})"
                         "\n",
                         answer.kind, answer.word, answer.first_mention, answer.position, join(candidates, "\",\""));
  }
  return lines;
}

}  // namespace carousel::examples
