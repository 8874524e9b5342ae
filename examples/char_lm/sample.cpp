#include <carousel/nn/generate.h>
#include <carousel/nn/saved_model.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "char_lm/checkpoints.h"
#include "char_lm/interrupt.h"
#include "char_lm/options.h"
#include "char_lm/other_programs.h"
#include "char_lm/prompt.h"
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

// One text as it grows.
class Writing {
 public:
  Writing(const Vocabulary& vocabulary, const std::string& stop) : vocabulary_(vocabulary), stop_(stop) {}

  // False when the text has come to its end.
  bool add(const GeneratedToken& token) {
    const std::string symbol = vocabulary_.decode({&token.token, 1});
    text_ += symbol;
    symbols_.push_back(symbol);
    log_probabilities_.push_back(token.log_probability);
    const size_t found = stop_.empty() ? std::string::npos : text_.find(stop_, safe_);
    if (found == std::string::npos) {
      safe_ = text_.size() - held_back();
      return true;
    }
    text_.resize(found);
    safe_ = found;
    return false;
  }
  // What may be shown that has not been: not what may become the stop string.
  std::string take_new() {
    std::string part = text_.substr(shown_, safe_ - shown_);
    shown_ = safe_;
    return part;
  }
  void finish() { safe_ = text_.size(); }

  const std::string& text() const { return text_; }
  nlohmann::json token_list() const {
    nlohmann::json list = nlohmann::json::array();
    for (size_t i = 0; i < symbols_.size(); ++i) {
      list.push_back({{"token", symbols_[i]}, {"logprob", log_probabilities_[i]}});
    }
    return list;
  }

 private:
  // Bytes at the end that the stop string begins with.
  size_t held_back() const {
    for (size_t count = std::min(text_.size(), stop_.size()); count > 0; --count) {
      if (text_.compare(text_.size() - count, count, stop_, 0, count) == 0) return count;
    }
    return 0;
  }

  const Vocabulary& vocabulary_;
  const std::string& stop_;
  std::string text_;
  std::vector<std::string> symbols_;
  std::vector<double> log_probabilities_;
  size_t safe_ = 0;   // bytes that no stop string can take back
  size_t shown_ = 0;  // bytes that were taken
};

void show(std::string_view part) {
  std::fwrite(part.data(), 1, part.size(), stdout);
  std::fflush(stdout);
}

void print_json(const SampleOptions& options, const std::string& prompt, const std::vector<Writing>& writings) {
  for (size_t i = 0; i < writings.size(); ++i) {
    nlohmann::ordered_json record = {
        {"prompt", prompt}, {"text", writings[i].text()}, {"seed", options.seed + static_cast<int64_t>(i)}};
    if (options.logprobs) record["tokens"] = writings[i].token_list();
    fmt::print("{}\n", record.dump());
  }
}

int sample(const SampleOptions& options) {
  print_header();
  const InterruptGuard interrupt;
  const SavedModel saved = make_model(open_checkpoint("checkpoint", options.checkpoint));
  const Vocabulary vocabulary = Vocabulary::from_symbols(saved.vocabulary);
  const Prompt prompt = known_prompt(prompt_text(options.prompt, options.prompt_file), vocabulary, options.unknown);
  for (const std::string& notice : prompt.notices) tell("note: " + notice);
  const std::vector<int64_t> context = context_of(prompt.text, vocabulary);

  std::vector<Rng> rngs;
  std::vector<Writing> writings;
  for (int64_t i = 0; i < options.samples; ++i) {
    rngs.emplace_back(static_cast<uint64_t>(options.seed + i));
    writings.emplace_back(vocabulary, options.stop);
  }
  const bool streams = options.samples == 1 && !options.json;
  if (streams) show(prompt.text);
  const auto on_token = [&](const GeneratedToken& token) {
    Writing& writing = writings[static_cast<size_t>(token.row)];
    const bool goes_on = writing.add(token);
    if (streams) show(writing.take_new());
    return goes_on && !interrupt.interrupted();
  };
  generate_rows(*saved.model, context,
                {.length = options.length,
                 .sampling = options.sampling,
                 .log_probabilities = options.logprobs,
                 .on_token = on_token},
                rngs);
  if (options.json) {
    print_json(options, prompt.text, writings);
    return interrupt.exit_code();
  }
  for (Writing& writing : writings) {
    writing.finish();
    if (!streams) show(prompt.text);
    show(writing.take_new());
    if (!writing.text().ends_with('\n')) show("\n");
    if (!streams) show("---------------\n");
  }
  return interrupt.exit_code();
}

Fields drawing_fields(SamplingOptions& options) {
  return {{.name = "temperature",
           .target = &options.temperature,
           .help = "0: always the likeliest",
           .minimum = 0,
           .maximum = 1e6},
          {.name = "top_k",
           .target = &options.top_k,
           .help = "draw among the k likeliest; 0: among all",
           .minimum = 0,
           .aliases = {"topk"}},
          {.name = "top_p",
           .target = &options.top_p,
           .help = "draw among the likeliest that together have this probability",
           .minimum = 1e-9,
           .maximum = 1,
           .aliases = {"topp"}},
          {.name = "min_p",
           .target = &options.min_p,
           .help = "draw among those with this share of the likeliest's probability",
           .minimum = 0,
           .maximum = 1,
           .aliases = {"minp"}},
          {.name = "repetition_penalty",
           .target = &options.repetition_penalty,
           .help = "above 1: less of what the text holds already",
           .minimum = 1e-3,
           .maximum = 1e3},
          {.name = "repetition_window",
           .target = &options.repetition_window,
           .help = "characters that count as held; 0: all",
           .minimum = 0}};
}

Fields text_fields(SampleOptions& options) {
  return {{.name = "prompt",
           .target = &options.prompt,
           .help = "text to go on from; FILE:path reads it",
           .aliases = {"primetext", "start_text", "start"}},
          {.name = "prompt_file", .target = &options.prompt_file, .help = "file to go on from"},
          {.name = "unknown",
           .target = &options.unknown,
           .help = "symbols of the prompt that the model never saw",
           .choices = {"error", "skip", "nearest"}},
          {.name = "length",
           .target = &options.length,
           .help = "characters to write",
           .minimum = 0,
           .maximum = 1e9,
           .aliases = {"max_new_tokens", "genlen"}},
          {.name = "stop", .target = &options.stop, .help = "end before this string"},
          {.name = "samples",
           .target = &options.samples,
           .help = "texts; the seeds of the others count on from --seed",
           .minimum = 1,
           .maximum = 1 << 16,
           .aliases = {"num_samples"}},
          {.name = "seed", .target = &options.seed, .help = "another seed, another text", .minimum = 0}};
}

}  // namespace

Command sample_command(SampleOptions& options) {
  const Fields output = {
      {.name = "json", .target = &options.json, .help = "print a JSON object a text, which is without the prompt"},
      {.name = "logprobs", .target = &options.logprobs, .help = "with --json: each character and its log-probability"}};
  return {.name = "sample",
          .help = "Write text with a trained model",
          .positionals = {checkpoint_field(options.checkpoint)},
          .groups = {{"Text", text_fields(options)},
                     {"Drawing, in this order: penalty, temperature, top-k, top-p, min-p",
                      drawing_fields(options.sampling)},
                     {"Output", output}},
          .strangers = strangers_to_sample(),
          .check =
              [&options](const Given&) {
                check<ValueError>(!options.logprobs || options.json, "--logprobs", "is for --json");
                check<ValueError>(options.seed <= std::numeric_limits<int64_t>::max() - options.samples, "--seed",
                                  "must leave seeds for {} texts: got {}", options.samples, options.seed);
              },
          .run = [&options] { return sample(options); }};
}

}  // namespace carousel::examples
