// Prints short stories in which something named at the beginning is recalled at the end, for studies of memory.
//
//   stories --bytes 1000000 --distance 100 --seed 1 --answers answers.jsonl > stories.txt
//
// 0.05 s for 1 MB. The answers file holds one JSON record a story: which word is recalled, where it begins, and which
// other words could have stood there.
#include "common/stories.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/options.h"

using namespace carousel;
using namespace carousel::examples;

namespace {

void write_answers(const Stories& stories, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << answers_to_json_lines(stories);
  file.close();
  check<IoError>(file.good(), "stories", "cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) {
  StoryOptions options;
  auto seed = static_cast<int64_t>(options.seed);
  std::string answers;
  const Command command{
      .name = "",
      .help = "",
      .groups =
          {{"Stories",
            {{.name = "bytes",
              .target = &options.bytes,
              .help = "length of the text, at least",
              .minimum = 1,
              .maximum = 1e10},
             {.name = "distance",
              .target = &options.distance,
              .help = "characters between a word and its recall, at least",
              .minimum = 0,
              .maximum = 1e6},
             {.name = "seed", .target = &seed, .help = "another seed, other stories", .minimum = 0},
             {.name = "answers", .target = &answers, .help = "write the recalled words as JSON lines to this file"}}}},
      .run = [&] {
        options.seed = static_cast<uint64_t>(seed);
        const Stories stories = make_stories(options);
        if (!answers.empty()) write_answers(stories, answers);
        std::fwrite(stories.text.data(), 1, stories.text.size(), stdout);
        return 0;
      }};
  return run_program({"stories", "Stories in which something must be remembered", {command}}, argc, argv);
}
