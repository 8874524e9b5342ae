// What options say together: which follow from others, and which do not go together.
#include <carousel/nn/init.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "char_lm/checkpoints.h"
#include "char_lm/options.h"
#include "common/numbers.h"
#include "common/option_values.h"
#include "common/presets.h"
#include "common/text.h"

namespace carousel::examples {

namespace {

// What the command line says with one option beats what a configuration file says with another.
bool beats(const Given& given, const std::string& name, const std::string& other) {
  return given.count(other) == 0 || (is_typed(given, name) && !is_typed(given, other));
}

// nanoGPT's one width.
void spread_width(TrainOptions& options, Given& given) {
  const auto found = given.find("n_embd");
  if (found == given.end()) return;
  const std::string spelling = found->second;
  for (auto& [name, width] : {std::pair("embedding_size", &options.model.embedding_size),
                              std::pair("hidden_size", &options.model.hidden_size)}) {
    if (!beats(given, "n_embd", name)) continue;
    given[name] = spelling;
    *width = options.n_embd;
  }
}

// Residual blocks have one width.
void follow_form(TrainOptions& options, Given& given) {
  if (!layer_kind(options.model.model).form.residual) return;
  const bool own = given.count("hidden_size") > 0;
  if (own && beats(given, "hidden_size", "embedding_size")) {
    options.model.embedding_size = options.model.hidden_size;
    given.erase("embedding_size");
  } else if (beats(given, "embedding_size", "hidden_size")) {
    options.model.hidden_size = options.model.embedding_size;
    given.erase("hidden_size");
  }
}

// "--hidden-size 17, --heads 4": what was given of the model.
std::string given_sizes(TrainOptions& options, const Given& given) {
  std::vector<std::string> parts;
  for (const Field& field : model_fields(options)) {
    const auto found = given.find(field.name);
    if (found == given.end() || field.name == "model") continue;
    const std::string part = found->second + " " + value_text(field);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return join(parts);
}

// Finds out what the model does not accept before a file is touched.
void check_model(TrainOptions& options, const Given& given) {
  const init::ShapesOnly no_memory;
  CharacterModelConfig config = options.model;
  config.vocabulary_size = 1;
  Rng unused(0);
  try {
    const CharacterModel model(config, options.layer, unused);
  } catch (const ValueError& error) {
    const std::string text = error.what(), sizes = given_sizes(options, given);
    const size_t rule = text.starts_with('[') ? text.find("] ") + 2 : 0;  // behind the name of a class
    throw ValueError(fmt::format("[{}] {} cannot have{}: {}", spelled(given, "model"), options.model.model,
                                 sizes.empty() ? " its sizes" : " " + sizes, text.substr(rule)));
  }
}

// The options as they would be given again: what follows from others is left to follow again.
void note_config(TrainOptions& options) {
  TrainOptions known = options;
  if (!known.init_from.empty()) known.init_from = std::filesystem::absolute(known.init_from).string();
  options.as_config = to_config(all_fields(known));
}

void follow(TrainOptions& options) {
  if (layer_kind(options.model.model).form.positions && options.model.context == 0) {
    options.model.context = options.seq_length;
  }
  if (options.warmup < 0) options.warmup = std::min<int64_t>(100, options.steps / 10);
  if (std::isnan(options.min_lr)) options.min_lr = options.lr / 20;
  if (options.lr_decay_steps == 0) options.lr_decay_steps = options.steps;
  if (options.lr_decay_after < 0) options.lr_decay_after = options.lr_decay_every;
}

void check_rules(const TrainOptions& options, const Given& given) {
  parse_split(options.split);
  check<ValueError>(options.min_lr <= options.lr, spelled(given, "min_lr"), "must not exceed {}: got {} and {}",
                    spelled(given, "lr"), options.min_lr, options.lr);
  check<ValueError>(options.warmup <= options.lr_decay_steps, spelled(given, "warmup"),
                    "must not exceed the steps of the schedule: got {} and {}", options.warmup, options.lr_decay_steps);
  check<ValueError>(!layer_kind(options.model.model).form.positions || options.seq_length <= options.model.context,
                    spelled(given, "seq_length"), "must not exceed {}: got {} and {}", spelled(given, "context"),
                    options.seq_length, options.model.context);
}

// An option that only some optimisers or schedules read.
struct Reader {
  const char* option;
  std::string TrainOptions::*choice;
  std::vector<std::string> values;
};

// Of what was typed alone: a configuration file may well say more than one run needs.
void tell_what_surprises(const TrainOptions& options, const Given& given) {
  static const std::vector<Reader> readers = {{"lr_decay_factor", &TrainOptions::schedule, {"step", "exponential"}},
                                              {"lr_decay_every", &TrainOptions::schedule, {"step", "exponential"}},
                                              {"lr_decay_after", &TrainOptions::schedule, {"step"}},
                                              {"lr_decay_steps", &TrainOptions::schedule, {"cosine"}},
                                              {"momentum", &TrainOptions::optimizer, {"sgd", "rmsprop"}},
                                              {"decay_rate", &TrainOptions::optimizer, {"rmsprop"}},
                                              {"beta1", &TrainOptions::optimizer, {"adam", "adamw"}},
                                              {"beta2", &TrainOptions::optimizer, {"adam", "adamw"}}};
  for (const Reader& reader : readers) {
    const std::string& chosen = options.*reader.choice;
    const bool read = std::find(reader.values.begin(), reader.values.end(), chosen) != reader.values.end();
    if (read || !is_typed(given, reader.option)) continue;
    tell(fmt::format("note: {} has no effect: it belongs to --{} {}, and this is {}", given.at(reader.option),
                     reader.choice == &TrainOptions::schedule ? "schedule" : "optimizer", join(reader.values, " or "),
                     chosen));
  }
  if (spelled(given, "grad_clip") == "-grad_clip") {
    tell(
        "note: -grad_clip bounds the joint norm of all gradients here; what char-rnn bounds, every element, is "
        "--grad-clip-value");
  }
}

// An empty word is a variable of a script that was not set; without the option another text would be learnt, or
// another run begun.
void check_named(const TrainOptions& options, const Given& given) {
  for (const auto& [name, value] :
       {std::pair("text", &options.text), std::pair("resume", &options.resume), std::pair("config", &options.config)}) {
    check<ValueError>(!is_typed(given, name) || !value->empty(), spelled(given, name), "must not be empty: got \"\"");
  }
}

}  // namespace

void settle(TrainOptions& options, Given given) {
  check_named(options, given);
  given.erase("config");  // names no setting of its own
  check<ValueError>(!options.out.empty(), "--out", "must name a folder: got \"\"");
  if (!options.time_limit.empty()) parse_seconds("--time-limit", options.time_limit);
  if (!options.token_budget.empty()) parse_count("--token-budget", options.token_budget);
  spread_width(options, given);
  if (!options.text.empty()) options.text = std::filesystem::absolute(options.text).lexically_normal().string();
  if (!options.resume.empty()) {
    check_resumed(options, given);
    return note_config(options);
  }
  check<ValueError>(!options.force, "--force", "has a meaning with --resume only");
  if (options.init_from == "scratch") options.init_from.clear();  // nanoGPT's word
  if (const Preset* const preset = find_preset(options.preset)) {
    check<ValueError>(options.model.model == preset->model, spelled(given, "preset"), "{} is for --model {}: got {}",
                      preset->name, preset->model, options.model.model);
  }
  if (options.init_from.empty()) {
    follow_form(options, given);
  } else {
    start_from_checkpoint(options, given);
  }
  note_config(options);
  follow(options);
  check_model(options, given);
  check_rules(options, given);
  check_nothing_is_lost(options);
  tell_what_surprises(options, given);
}

}  // namespace carousel::examples
