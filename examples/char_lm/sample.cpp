#include <carousel/nn/generate.h>
#include <carousel/nn/saved_model.h>

#include <cstdio>

#include "char_lm/checkpoints.h"
#include "char_lm/interrupt.h"
#include "char_lm/options.h"
#include "char_lm/report.h"
#include "common/text.h"

namespace carousel::examples {

namespace {

// What the model reads before its first own symbol. Without a prompt that is a line end, where texts begin, when the
// vocabulary has one.
std::vector<int64_t> context_of(const std::string& prompt, const Vocabulary& vocabulary) {
  const bool has_line_end = vocabulary.symbols().find('\n') != std::string::npos;
  return vocabulary.encode(prompt.empty() && has_line_end ? "\n" : prompt).to_vector<int64_t>();
}

void print_json(const SampleOptions& options, std::string text) {
  std::string prompt = options.prompt;
  int64_t seed = options.seed;
  fmt::print("{}\n", fields_to_json({{.name = "prompt", .target = &prompt, .help = ""},
                                     {.name = "text", .target = &text, .help = ""},
                                     {.name = "seed", .target = &seed, .help = ""}}));
}

}  // namespace

int sample(const SampleOptions& options) {
  print_header();
  const InterruptGuard interrupt;
  const SavedModel saved = make_model(open_checkpoint("checkpoint", options.checkpoint));
  const Vocabulary vocabulary = Vocabulary::from_symbols(saved.vocabulary);
  const std::vector<int64_t> context = context_of(options.prompt, vocabulary);
  Rng rng(static_cast<uint64_t>(options.seed));
  std::string text;

  const auto show = [&](std::string_view part) {
    if (options.json) return;
    std::fwrite(part.data(), 1, part.size(), stdout);
    std::fflush(stdout);
  };
  show(options.prompt);
  generate(*saved.model, context,
           {.length = options.length,
            .sampling = {.temperature = options.temperature, .top_k = options.top_k},
            .on_token =
                [&](int64_t token) {
                  const std::string symbol = vocabulary.decode({&token, 1});
                  text += symbol;
                  show(symbol);
                  return !interrupt.interrupted();
                }},
           rng);
  if (options.json) {
    print_json(options, text);
  } else if (!text.ends_with('\n')) {
    show("\n");
  }
  return interrupt.exit_code();
}

}  // namespace carousel::examples
