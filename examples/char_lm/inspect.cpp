#include <carousel/nn/evaluate.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/checkpoint.h>

#include <cstdio>

#include "char_lm/corpus.h"
#include "char_lm/options.h"
#include "char_lm/report.h"

namespace carousel::examples {

namespace {

// A checkpoint, whole: the model, and where its training stood.
struct Run {
  SavedModel saved;
  TrainingState training;
};

Run load_run(const std::string& path) {
  const Archive archive = load_archive(checkpoint_path(path));
  SavedModel saved = make_model(archive);
  AdamW optimizer(saved.model->parameters(), {});
  TrainingState training = resume(archive, *saved.model, optimizer);
  return {std::move(saved), std::move(training)};
}

// One part of a text as it is reported.
struct PartLoss {
  std::string name;
  int64_t characters;
  double nats;
  double bits_per_character;
};

void print_json(std::vector<PartLoss> parts) {
  Fields fields;
  for (PartLoss& part : parts) {
    fields.push_back({.name = part.name + "_characters", .target = &part.characters, .help = ""});
    fields.push_back({.name = part.name + "_nats", .target = &part.nats, .help = ""});
    fields.push_back({.name = part.name + "_bits", .target = &part.bits_per_character, .help = ""});
  }
  fmt::print("{}\n", fields_to_json(fields));
}

}  // namespace

int eval(const EvalOptions& options) {
  print_header();
  const Run run = load_run(options.checkpoint);
  const TrainOptions training = train_options_from_json(run.training.options, run.saved);
  const Corpus corpus = load_corpus(options.text.empty() ? training.text : options.text,
                                    options.split.empty() ? training.split : options.split, run.saved.vocabulary);
  std::vector<PartLoss> parts;
  for (const auto& [name, tokens] : {std::pair("validation", corpus.validation), std::pair("test", corpus.test)}) {
    if (tokens.numel() < 2) continue;
    const double nats = evaluate(*run.saved.model, tokens);
    parts.push_back({name, tokens.numel(), nats, bits(nats)});
  }
  check<ValueError>(!parts.empty(), "eval", "validation or test needs at least 2 characters: got {} and {}",
                    corpus.validation.numel(), corpus.test.numel());
  if (options.json) {
    print_json(parts);
    return 0;
  }
  for (const PartLoss& part : parts) {
    fmt::print("{}: {:.4f} nats ({:.4f} bits) per character over {} characters\n", part.name, part.nats,
               part.bits_per_character, part.characters);
  }
  return 0;
}

int info(const InfoOptions& options) {
  print_header();
  const Run run = load_run(options.checkpoint);
  TrainOptions training = train_options_from_json(run.training.options, run.saved);
  std::string vocabulary = run.saved.vocabulary;
  int64_t vocabulary_size = training.model.vocabulary_size;
  int64_t parameters = run.saved.model->parameter_count();
  int64_t state_numbers = run.saved.model->stack().state_size(1);
  int64_t step = run.training.step;

  Fields shown = all_fields(training);
  shown.push_back({.name = "vocabulary", .target = &vocabulary, .help = ""});
  shown.push_back({.name = "vocabulary_size", .target = &vocabulary_size, .help = ""});
  shown.push_back({.name = "parameters", .target = &parameters, .help = ""});
  shown.push_back({.name = "state_numbers", .target = &state_numbers, .help = ""});  // that a text carries along
  shown.push_back({.name = "step", .target = &step, .help = ""});
  if (options.json) {
    fmt::print("{}\n", fields_to_json(shown));
    return 0;
  }
  for (const Field& field : shown) {
    if (field.name == "vocabulary") continue;  // holds line ends
    fmt::print("{}: {}\n", field.name, std::visit([](auto* value) { return fmt::format("{}", *value); }, field.target));
  }
  return 0;
}

}  // namespace carousel::examples
