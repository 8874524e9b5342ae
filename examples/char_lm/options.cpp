#include "char_lm/options.h"

#include <carousel/nn/init.h>
#include <carousel/optim/make_optimizer.h>

#include <cmath>
#include <filesystem>

#include "char_lm/checkpoints.h"
#include "common/numbers.h"
#include "common/presets.h"
#include "common/text.h"

namespace carousel::examples {

Fields data_fields(TrainOptions& options) {
  return {{.name = "text",
           .target = &options.text,
           .help = "UTF-8 file to learn; without it, embedded stories",
           .aliases = {"input"}},
          {.name = "split",
           .target = &options.split,
           .help = "nanogpt (90/10), char-rnn (95/5), torch-rnn (80/10/10), or shares: 0.9, or 0.8,0.1"}};
}

Fields model_fields(TrainOptions& options) {
  Fields result = fields(options.model);
  const bool has_context = layer_kind(options.model.model).form.positions;
  for (Field& field : result) {
    if (field.name == "context") field.help += "; without it, those of a window";
  }
  std::erase_if(result, [has_context](const Field& field) {
    return field.name == "vocabulary_size" || (field.name == "context" && !has_context);
  });
  const Fields& layer = options.layer.field_list();
  result.insert(result.end(), layer.begin(), layer.end());
  return result;
}

Fields training_fields(TrainOptions& options) {
  constexpr double many = 1e12;
  return {{.name = "seq_length",
           .target = &options.seq_length,
           .help = "symbols of a window",
           .minimum = 1,
           .maximum = 1 << 20,
           .aliases = {"block_size"}},
          {.name = "batch_size",
           .target = &options.batch_size,
           .help = "streams read side by side",
           .minimum = 1,
           .maximum = 1 << 20},
          {.name = "steps",
           .target = &options.steps,
           .help = "updates",
           .minimum = 1,
           .maximum = many,
           .aliases = {"max_iters"}},
          {.name = "optimizer",
           .target = &options.optimizer,
           .help = "how gradients change weights",
           .choices = optimizer_names()},
          {.name = "schedule",
           .target = &options.schedule,
           .help = "how the learning rate falls",
           .choices = {"cosine", "constant", "step", "exponential"}},
          {.name = "lr",
           .target = &options.lr,
           .help = "learning rate",
           .minimum = 0,
           .maximum = 100,
           .aliases = {"learning_rate"}},
          {.name = "min_lr",
           .target = &options.min_lr,
           .help = "below which no schedule goes; without it, lr / 20",
           .minimum = 0,
           .maximum = 100},
          {.name = "warmup",
           .target = &options.warmup,
           .help = "steps of linear warm-up; without it, 100 or a tenth of a short run",
           .minimum = 0,
           .maximum = many,
           .aliases = {"warmup_iters"}},
          {.name = "lr_decay_factor",
           .target = &options.lr_decay_factor,
           .help = "schedules step and exponential: what the rate is multiplied with",
           .minimum = 1e-9,
           .maximum = 1,
           .aliases = {"learning_rate_decay"}},
          {.name = "lr_decay_every",
           .target = &options.lr_decay_every,
           .help = "steps that this takes (in torch-rnn: passes)",
           .minimum = 1,
           .maximum = many},
          {.name = "lr_decay_after",
           .target = &options.lr_decay_after,
           .help = "schedule step: steps before the first time; without it, lr_decay_every",
           .minimum = 0,
           .maximum = many},
          {.name = "momentum",
           .target = &options.momentum,
           .help = "sgd and rmsprop: memory of the direction",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "decay_rate",
           .target = &options.decay_rate,
           .help = "rmsprop: memory of the square",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "beta1",
           .target = &options.beta1,
           .help = "adam and adamw: memory of the mean",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "beta2",
           .target = &options.beta2,
           .help = "adam and adamw: memory of the square",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "weight_decay",
           .target = &options.weight_decay,
           .help = "of matrices only",
           .minimum = 0,
           .maximum = 10},
          {.name = "grad_clip",
           .target = &options.grad_clip,
           .help = "largest joint norm of all gradients; 0: no limit",
           .minimum = 0,
           .maximum = 1e9},
          {.name = "grad_clip_value",
           .target = &options.grad_clip_value,
           .help = "largest element of a gradient, as char-rnn's -grad_clip; 0: no limit",
           .minimum = 0,
           .maximum = 1e9},
          {.name = "gradient_accumulation_steps",
           .target = &options.gradient_accumulation_steps,
           .help = "windows whose mean gradient makes a step",
           .minimum = 1,
           .maximum = 1 << 20},
          {.name = "lr_decay_steps",
           .target = &options.lr_decay_steps,
           .help = "where the cosine ends; without it, at --steps",
           .minimum = 1,
           .maximum = many,
           .aliases = {"lr_decay_iters"}},
          {.name = "windows",
           .target = &options.windows,
           .help = "streams whose state is carried on, or places drawn afresh",
           .choices = {"contiguous", "random"}}};
}

Fields run_fields(TrainOptions& options) {
  return {
      {.name = "seed", .target = &options.seed, .help = "of weights and dropout", .minimum = 0},
      {.name = "threads", .target = &options.threads, .help = "of kernels and BLAS", .minimum = 1, .maximum = 1024},
      {.name = "recompute",
       .target = &options.recompute,
       .help = "keep of each layer its input alone and make the rest again in backward: less memory, the same numbers, "
               "up to a third more time"},
      {.name = "out",
       .target = &options.out,
       .help = "folder for checkpoint and log",
       .aliases = {"out_dir", "checkpoint_dir"}},
      {.name = "eval_interval",
       .target = &options.eval_interval,
       .help = "steps between validations, each with a checkpoint",
       .minimum = 1,
       .maximum = 1e12,
       .aliases = {"eval_val_every"}},
      {.name = "log_interval",
       .target = &options.log_interval,
       .help = "steps between records",
       .minimum = 1,
       .maximum = 1e12,
       .aliases = {"print_every"}},
      {.name = "checkpoint_every",
       .target = &options.checkpoint_every,
       .help = "steps between checkpoints; 0: with validations only",
       .minimum = 0,
       .maximum = 1e12},
      {.name = "keep_last",
       .target = &options.keep_last,
       .help = "checkpoints that stay as step-NUMBER.carousel, besides the last and the best",
       .minimum = 0,
       .maximum = 1e6},
      {.name = "early_stop",
       .target = &options.early_stop,
       .help = "end after so many validations without a better loss; 0: do not",
       .minimum = 0,
       .maximum = 1e9},
      {.name = "on_save_error",
       .target = &options.on_save_error,
       .help = "when a checkpoint cannot be written",
       .choices = {"stop", "continue"}},
      {.name = "on_nonfinite",
       .target = &options.on_nonfinite,
       .help = "when a loss or gradient is NaN or infinite: end, or leave the step out",
       .choices = {"stop", "skip"}},
      {.name = "init_from",
       .target = &options.init_from,
       .help = "start from the weights in this folder or checkpoint; sizes, text and what else is not given are its "
               "own"}};
}

namespace {

// What ends a run early, and where one goes on: of one command line, not of a run.
Fields ending_fields(TrainOptions& options) {
  return {
      {.name = "stop_after",
       .target = &options.stop_after,
       .help = "end after so many steps in all, as an interrupted run would; 0: do not",
       .minimum = 0,
       .maximum = 1e12},
      {.name = "time_limit", .target = &options.time_limit, .help = "end after 90s, 5m or 1h"},
      {.name = "token_budget", .target = &options.token_budget, .help = "end after so many tokens in all: 500k, 20M"},
      {.name = "resume",
       .target = &options.resume,
       .help = "go on with the run in this folder, exactly as if it had not ended"},
      {.name = "force", .target = &options.force, .help = "resume with another text than it began with"}};
}

// nanoGPT's one width.
void spread_width(TrainOptions& options, Given& given) {
  const auto typed = given.find("n_embd");
  if (typed == given.end()) return;
  const std::string spelling = typed->second;
  if (given.emplace("embedding_size", spelling).second) options.model.embedding_size = options.n_embd;
  if (given.emplace("hidden_size", spelling).second) options.model.hidden_size = options.n_embd;
}

// Finds out what the model does not accept before a file is touched.
void check_model(const TrainOptions& options) {
  const init::ShapesOnly no_memory;
  CharacterModelConfig config = options.model;
  config.vocabulary_size = 1;
  Rng unused(0);
  const CharacterModel model(config, options.layer, unused);
}

// What follows from the kind of model: blocks have one width, and a context is as long as the windows.
void follow_form(TrainOptions& options, const Given& given) {
  const ModelForm& form = layer_kind(options.model.model).form;
  if (form.residual) {
    int64_t& width = given.count("hidden_size") > 0 ? options.model.hidden_size : options.model.embedding_size;
    if (given.count("hidden_size") == 0) options.model.hidden_size = width;
    if (given.count("embedding_size") == 0) options.model.embedding_size = width;
  }
  if (!form.positions) return;
  if (given.count("context") == 0) options.model.context = options.seq_length;
}

// The defaults of a kind of model; an unknown name is for the parser to complain about.
TrainOptions defaults_of(const std::string& model) {
  TrainOptions options;
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.name != model) continue;
    options.model.model = kind.name;
    options.layer = kind.default_config();
    if (!kind.form.positions) continue;
    options.model.context = 0;  // not given yet: follows from the windows
    options.windows = "random";
  }
  return options;
}

Field preset_field(TrainOptions& options) {
  return {.name = "preset", .target = &options.preset, .help = "settings that go together", .choices = preset_names()};
}

}  // namespace

TrainOptions default_train_options(const std::vector<std::string>& arguments) {
  if (const std::string folder = folder_to_resume(arguments); !folder.empty()) return resumed_options(folder);
  TrainOptions options;
  const Preset* const preset = find_preset(peek_option(arguments, preset_field(options)));
  if (preset != nullptr) options.model.model = preset->model;
  options = defaults_of(peek_option(arguments, model_fields(options).front()));
  if (preset == nullptr) return options;
  options.preset = preset->name;
  if (options.model.model == preset->model) fields_from_json("--preset", preset->options, all_fields(options));
  return options;
}

std::vector<OptionGroup> option_groups(TrainOptions& options) {
  std::vector<OptionGroup> groups = {{"Data", data_fields(options)},
                                     {"Model", model_fields(options)},
                                     {"Training", training_fields(options)},
                                     {"Run", run_fields(options)}};
  groups[1].fields.push_back({.name = "n_embd",
                              .target = &options.n_embd,
                              .help = "both widths at once, as in nanoGPT",
                              .minimum = 1,
                              .maximum = 1 << 16});
  groups[2].fields.insert(groups[2].fields.begin(), preset_field(options));
  const Fields ending = ending_fields(options);
  groups[3].fields.insert(groups[3].fields.end(), ending.begin(), ending.end());
  groups[3].fields.push_back(
      {.name = "overwrite", .target = &options.overwrite, .help = "the folder may hold a run, which is lost"});
  return groups;
}

std::string kinds_of_model() {
  std::string text = "Kinds of model, whose own options are shown by --model KIND --help:\n";
  for (const LayerKind& kind : layer_kinds()) text += fmt::format("  {:<8}{}\n", kind.name, kind.help);
  return text;
}

Fields all_fields(TrainOptions& options) {
  Fields result;
  for (const Fields& part :
       {data_fields(options), model_fields(options), training_fields(options), run_fields(options)}) {
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

std::string to_json(TrainOptions options) { return fields_to_json(all_fields(options)); }

void settle(TrainOptions& options, Given given) {
  check<ValueError>(!options.out.empty(), "--out", "must name a folder: got \"\"");
  if (!options.time_limit.empty()) parse_seconds("--time-limit", options.time_limit);
  if (!options.token_budget.empty()) parse_count("--token-budget", options.token_budget);
  spread_width(options, given);
  if (!options.text.empty()) options.text = std::filesystem::absolute(options.text).lexically_normal().string();
  if (!options.resume.empty()) return check_resumed(options, given);
  check<ValueError>(!options.force, "--force", "has a meaning with --resume only");
  if (options.init_from == "scratch") options.init_from.clear();  // nanoGPT's word
  if (const Preset* const preset = find_preset(options.preset)) {
    check<ValueError>(options.model.model == preset->model, "--preset", "{} is for --model {}: got {}", preset->name,
                      preset->model, options.model.model);
  }
  if (options.init_from.empty()) {
    follow_form(options, given);
    check_model(options);
  } else {
    start_from_checkpoint(options, given);
  }
  if (options.warmup < 0) options.warmup = std::min<int64_t>(100, options.steps / 10);
  if (std::isnan(options.min_lr)) options.min_lr = options.lr / 20;
  if (options.lr_decay_steps == 0) options.lr_decay_steps = options.steps;
  if (options.lr_decay_after < 0) options.lr_decay_after = options.lr_decay_every;
  parse_split(options.split);
  check<ValueError>(options.min_lr <= options.lr, "--min-lr", "must not exceed --lr: got {} and {}", options.min_lr,
                    options.lr);
  check<ValueError>(options.warmup <= options.lr_decay_steps, "--warmup",
                    "must not exceed the steps of the schedule: got {} and {}", options.warmup, options.lr_decay_steps);
  check<ValueError>(!layer_kind(options.model.model).form.positions || options.seq_length <= options.model.context,
                    "--seq-length", "must not exceed the context: got {} and {}", options.seq_length,
                    options.model.context);
  check_nothing_is_lost(options);
}

Field checkpoint_field(std::string& target) {
  return {.name = "checkpoint", .target = &target, .help = "a checkpoint, or the folder of a run"};
}

}  // namespace carousel::examples
