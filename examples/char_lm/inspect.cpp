#include <carousel/nn/evaluate.h>
#include <carousel/nn/saved_model.h>
#include <carousel/optim/checkpoint.h>

#include <cmath>
#include <cstdio>

#include "char_lm/baselines.h"
#include "char_lm/checkpoints.h"
#include "char_lm/corpus.h"
#include "char_lm/options.h"
#include "char_lm/report.h"

namespace carousel::examples {

namespace {

// One part of a text as it is reported.
struct PartLoss {
  std::string name;
  int64_t characters;
  double nats;
  double bits_per_character;
};

void print_json(std::vector<PartLoss> parts, std::optional<Recall> recall) {
  Fields fields;
  for (PartLoss& part : parts) {
    fields.push_back({.name = part.name + "_characters", .target = &part.characters, .help = ""});
    fields.push_back({.name = part.name + "_nats", .target = &part.nats, .help = ""});
    fields.push_back({.name = part.name + "_bits", .target = &part.bits_per_character, .help = ""});
  }
  double share = 0;
  if (recall) {
    share = recall->share();
    fields.push_back({.name = "recall", .target = &share, .help = ""});
    fields.push_back({.name = "recall_chance", .target = &recall->chance, .help = ""});
    fields.push_back({.name = "recall_asked", .target = &recall->asked, .help = ""});
  }
  fmt::print("{}\n", fields_to_json(fields));
}

// What a model costs to run: numbers that a row carries, and multiplications with an addition, after so many tokens.
struct Cost {
  int64_t tokens, state_numbers, multiply_adds;
};

std::vector<Cost> costs_of(const CharacterModel& model) {
  std::vector<Cost> costs;
  for (const int64_t tokens : {1, 100, 1024, 100000}) {
    costs.push_back({tokens, model.state_size(tokens), model.multiply_adds(tokens)});
  }
  return costs;
}

void print_costs(const std::vector<Cost>& costs) {
  fmt::print("{:>12} {:>25} {:>28}\n", "tokens read", "numbers kept (per text)", "multiply-adds (last token)");
  for (const Cost& cost : costs)
    fmt::print("{:>12} {:>25} {:>28}\n", cost.tokens, cost.state_numbers, cost.multiply_adds);
}

bool is_empty_text(const Field& field) {
  const auto* text = std::get_if<std::string*>(&field.target);
  return text != nullptr && (*text)->empty();
}

}  // namespace

int eval(const EvalOptions& options) {
  print_header();
  const Archive archive = open_checkpoint("checkpoint", options.checkpoint);
  const SavedModel saved = make_model(archive);
  const TrainOptions training = options_of(archive);
  const Corpus corpus = load_corpus(options.text.empty() ? training.text : options.text,
                                    options.split.empty() ? training.split : options.split, saved.vocabulary);
  std::vector<PartLoss> parts;
  for (const auto& [name, tokens] : {std::pair("validation", corpus.validation), std::pair("test", corpus.test)}) {
    if (tokens.numel() < 2) continue;
    const double nats = evaluate(*saved.model, tokens);
    check<ValueError>(std::isfinite(nats), "eval", "the loss must be finite: got {} on the {} part", std::abs(nats),
                      name);
    parts.push_back({name, tokens.numel(), nats, bits(nats)});
  }
  check<ValueError>(!parts.empty(), "eval", "validation or test needs at least 2 characters: got {} and {}",
                    corpus.validation.numel(), corpus.test.numel());
  const std::optional<Recall> recall = recall_on_validation(*saved.model, corpus);
  if (options.json) {
    print_json(parts, recall);
    return 0;
  }
  for (const PartLoss& part : parts) {
    fmt::print("{}: {:.4f} nats ({:.4f} bits) per character over {} characters\n", part.name, part.nats,
               part.bits_per_character, part.characters);
  }
  if (recall) fmt::print("{}\n", to_string(*recall));
  if (corpus.validation.numel() >= 2) fmt::print("{}\n", to_string(baselines_of(corpus, corpus.validation)));
  return 0;
}

int info(const InfoOptions& options) {
  print_header();
  const Archive archive = open_checkpoint("checkpoint", options.checkpoint);
  const SavedModel saved = make_model(archive);
  TrainOptions training = options_of(archive);
  std::string vocabulary = saved.vocabulary;
  int64_t vocabulary_size = training.model.vocabulary_size;
  int64_t parameters = saved.model->parameter_count();
  std::vector<Cost> costs = costs_of(*saved.model);
  int64_t step = training_state(archive).step;
  int64_t state_numbers = saved.model->state_size(std::min(step, saved.model->context().value_or(step)));
  std::string digest = state_digest(archive);
  Progress progress = progress_of(archive);

  Fields shown = all_fields(training);
  std::erase_if(shown, is_empty_text);
  shown.push_back({.name = "vocabulary", .target = &vocabulary, .help = ""});
  shown.push_back({.name = "vocabulary_size", .target = &vocabulary_size, .help = ""});
  shown.push_back({.name = "parameters", .target = &parameters, .help = ""});
  shown.push_back({.name = "step", .target = &step, .help = ""});
  shown.push_back({.name = "state_numbers", .target = &state_numbers, .help = ""});
  shown.push_back({.name = "state_sha256", .target = &digest, .help = ""});
  for (const Field& field : fields(progress)) shown.push_back(field);
  if (options.json) {
    for (Cost& cost : costs) {
      const std::string after = fmt::format("_after_{}", cost.tokens);
      shown.push_back({.name = "state_numbers" + after, .target = &cost.state_numbers, .help = ""});
      shown.push_back({.name = "multiply_adds" + after, .target = &cost.multiply_adds, .help = ""});
    }
    fmt::print("{}\n", fields_to_json(shown));
    return 0;
  }
  for (const Field& field : shown) {
    if (field.name == "vocabulary") continue;  // holds line ends
    fmt::print("{}: {}\n", field.name, std::visit([](auto* value) { return fmt::format("{}", *value); }, field.target));
  }
  print_costs(costs);
  return 0;
}

}  // namespace carousel::examples
