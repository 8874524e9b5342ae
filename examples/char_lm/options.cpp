#include "char_lm/options.h"

#include <carousel/optim/make_optimizer.h>

#include "char_lm/checkpoints.h"
#include "common/presets.h"

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

namespace {

constexpr double many = 1e12;

Fields window_fields(TrainOptions& options) {
  return {{.name = "seq_length",
           .target = &options.seq_length,
           .help = "symbols of a window, through which gradients flow back",
           .minimum = 1,
           .maximum = 1 << 20,
           .aliases = {"block_size"}},
          {.name = "batch_size",
           .target = &options.batch_size,
           .help = "windows of one update, read side by side",
           .minimum = 1,
           .maximum = 1 << 20},
          {.name = "steps",
           .target = &options.steps,
           .help = "updates of the weights",
           .minimum = 1,
           .maximum = many,
           .aliases = {"max_iters"}},
          {.name = "gradient_accumulation_steps",
           .target = &options.gradient_accumulation_steps,
           .help = "windows whose mean gradient makes a step",
           .minimum = 1,
           .maximum = 1 << 20},
          {.name = "windows",
           .target = &options.windows,
           .help = "where a window begins: at the end of the last, whose state is carried on, or anywhere",
           .choices = {"contiguous", "random"}}};
}

Fields optimizer_fields(TrainOptions& options) {
  return {{.name = "optimizer",
           .target = &options.optimizer,
           .help = "how gradients change weights",
           .choices = optimizer_names()},
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
           .maximum = 0.999999}};
}

Fields schedule_fields(TrainOptions& options) {
  return {{.name = "lr",
           .target = &options.lr,
           .help = "learning rate",
           .minimum = 0,
           .maximum = 100,
           .aliases = {"learning_rate"}},
          {.name = "schedule",
           .target = &options.schedule,
           .help = "how the learning rate falls",
           .choices = {"cosine", "constant", "step", "exponential"}},
          {.name = "warmup",
           .target = &options.warmup,
           .help = "steps of linear warm-up; without it, 100 or a tenth of a short run",
           .minimum = 0,
           .maximum = many,
           .aliases = {"warmup_iters"}},
          {.name = "min_lr",
           .target = &options.min_lr,
           .help = "below which no schedule goes; without it, a twentieth of --lr",
           .minimum = 0,
           .maximum = 100},
          {.name = "lr_decay_steps",
           .target = &options.lr_decay_steps,
           .help = "schedule cosine: the step of its end; without it, --steps",
           .minimum = 1,
           .maximum = many,
           .aliases = {"lr_decay_iters"}},
          {.name = "lr_decay_factor",
           .target = &options.lr_decay_factor,
           .help = "schedules step and exponential: what the rate is multiplied with, time and again",
           .minimum = 1e-9,
           .maximum = 1,
           .aliases = {"learning_rate_decay"}},
          {.name = "lr_decay_every",
           .target = &options.lr_decay_every,
           .help = "steps from one such time to the next; torch-rnn counts passes",
           .minimum = 1,
           .maximum = many},
          {.name = "lr_decay_after",
           .target = &options.lr_decay_after,
           .help = "schedule step: steps before the first time; without it, --lr-decay-every",
           .minimum = 0,
           .maximum = many}};
}

Fields joined(const std::vector<Fields>& parts) {
  Fields result;
  for (const Fields& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

}  // namespace

Fields training_fields(TrainOptions& options) {
  return joined({window_fields(options), optimizer_fields(options), schedule_fields(options)});
}

Fields run_fields(TrainOptions& options) {
  return {
      {.name = "seed",
       .target = &options.seed,
       .help = "another seed, other weights at the beginning and other dropout",
       .minimum = 0},
      {.name = "threads", .target = &options.threads, .help = "threads that compute", .minimum = 1, .maximum = 1024},
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
       .maximum = many,
       .aliases = {"eval_val_every"}},
      {.name = "log_interval",
       .target = &options.log_interval,
       .help = "steps between records",
       .minimum = 1,
       .maximum = many,
       .aliases = {"print_every"}},
      {.name = "checkpoint_every",
       .target = &options.checkpoint_every,
       .help = "steps between checkpoints; 0: with validations only",
       .minimum = 0,
       .maximum = many},
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
       .help = "when a checkpoint or a record cannot be written",
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
       .maximum = many},
      {.name = "time_limit", .target = &options.time_limit, .help = "end after 90s, 5m or 1h"},
      {.name = "token_budget", .target = &options.token_budget, .help = "end after so many tokens in all: 500k, 20M"},
      {.name = "resume",
       .target = &options.resume,
       .help = "go on with the run in this folder, exactly as if it had not ended"},
      {.name = "force", .target = &options.force, .help = "resume with another text than it began with"}};
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

Field config_field(std::string& target) {
  return {.name = "config",
          .target = &target,
          .help = "JSON file with options, such as the config.json of a run; what the command line says beats it"};
}

TrainOptions default_train_options(const std::vector<std::string>& arguments, const Config& config) {
  if (const std::string folder = folder_to_resume(arguments, config); !folder.empty()) return resumed_options(folder);
  TrainOptions options;
  const Preset* const preset = find_preset(peek_option(arguments, config, preset_field(options)));
  if (preset != nullptr) options.model.model = preset->model;
  options = defaults_of(peek_option(arguments, config, model_fields(options).front()));
  if (preset == nullptr) return options;
  options.preset = preset->name;
  if (options.model.model == preset->model) fields_from_json("--preset", preset->options, all_fields(options));
  return options;
}

std::vector<OptionGroup> option_groups(TrainOptions& options) {
  const Field width = {.name = "n_embd",
                       .target = &options.n_embd,
                       .help = "both widths at once, as in nanoGPT",
                       .minimum = 1,
                       .maximum = 1 << 16};
  const Field overwrite = {
      .name = "overwrite", .target = &options.overwrite, .help = "the folder may hold a run, which is lost"};
  return {{"Start from", {config_field(options.config), preset_field(options)}},
          {"Data", data_fields(options)},
          {"Model", joined({model_fields(options), {width}})},
          {"Training", window_fields(options)},
          {"Learning rate", schedule_fields(options)},
          {"Optimiser", optimizer_fields(options)},
          {"Run", joined({run_fields(options), {overwrite}})},
          {"Ending and going on", ending_fields(options)}};
}

std::string kinds_of_model() {
  std::string text = "Kinds of model, whose own options are shown by --model KIND --help:\n";
  for (const LayerKind& kind : layer_kinds()) text += fmt::format("  {:<8}{}\n", kind.name, kind.help);
  return text;
}

Strangers options_of_other_kinds(const TrainOptions& options) {
  std::map<std::string, std::vector<std::string>> owners;
  for (const LayerKind& kind : layer_kinds()) {
    const LayerConfig layer = kind.default_config();
    for (const Field& field : layer.field_list()) {
      owners[field.name].push_back(kind.name);
      for (const std::string& alias : field.aliases) owners[alias].push_back(kind.name);
    }
    if (kind.form.positions) owners["context"].push_back(kind.name);
  }
  Strangers strangers;
  for (const auto& [name, kinds] : owners) {
    strangers[name] = {
        .advice = fmt::format("is an option of --model {}, not of {}", join(kinds, " and "), options.model.model)};
  }
  return strangers;
}

Fields all_fields(TrainOptions& options) {
  return joined({data_fields(options), model_fields(options), training_fields(options), run_fields(options)});
}

std::string to_json(TrainOptions options) { return fields_to_json(all_fields(options)); }

Field checkpoint_field(std::string& target) {
  return {.name = "checkpoint", .target = &target, .help = "a checkpoint, or the folder of a run"};
}

}  // namespace carousel::examples
