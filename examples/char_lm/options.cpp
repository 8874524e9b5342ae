#include "char_lm/options.h"

#include <carousel/tensor/runtime.h>

#include <cmath>

#include "common/text.h"

namespace carousel::examples {

namespace {

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
  std::erase_if(result, [](const Field& field) { return field.name == "vocabulary_size"; });
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
          {.name = "lr",
           .target = &options.lr,
           .help = "learning rate",
           .minimum = 0,
           .maximum = 100,
           .aliases = {"learning_rate"}},
          {.name = "min_lr",
           .target = &options.min_lr,
           .help = "rate at the end of the cosine; without it, lr / 20",
           .minimum = 0,
           .maximum = 100},
          {.name = "warmup",
           .target = &options.warmup,
           .help = "steps of linear warm-up",
           .minimum = 0,
           .maximum = many,
           .aliases = {"warmup_iters"}},
          {.name = "beta1",
           .target = &options.beta1,
           .help = "AdamW: memory of the mean",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "beta2",
           .target = &options.beta2,
           .help = "AdamW: memory of the square",
           .minimum = 0,
           .maximum = 0.999999},
          {.name = "weight_decay",
           .target = &options.weight_decay,
           .help = "of matrices only",
           .minimum = 0,
           .maximum = 10},
          {.name = "grad_clip",
           .target = &options.grad_clip,
           .help = "largest norm of all gradients; 0: no limit",
           .minimum = 0,
           .maximum = 1e9}};
}

Fields run_fields(TrainOptions& options) {
  return {{.name = "seed", .target = &options.seed, .help = "of weights and dropout", .minimum = 0},
          {.name = "threads", .target = &options.threads, .help = "of kernels and BLAS", .minimum = 1, .maximum = 1024},
          {.name = "out",
           .target = &options.out,
           .help = "folder for checkpoint and log",
           .aliases = {"out_dir", "checkpoint_dir"}},
          {.name = "eval_interval",
           .target = &options.eval_interval,
           .help = "steps between validations, each with a checkpoint",
           .minimum = 1,
           .maximum = 1e12,
           .aliases = {"eval_val_every", "checkpoint_every"}},
          {.name = "init_from",
           .target = &options.init_from,
           .help = "start from the weights of this checkpoint or folder; sizes and symbols are its own"}};
}

}  // namespace

TrainOptions default_train_options(const std::vector<std::string>& arguments) {
  TrainOptions options{.layer = layer_kind("rnn").default_config(), .threads = threads()};
  options.init_from = peek_option(arguments, run_fields(options).back());
  if (!options.init_from.empty()) {
    const SavedModel saved = load(options.init_from);
    options.model = saved.model->config();
    options.layer = saved.model->layer_config();
  }
  const std::string model = peek_option(arguments, model_fields(options).front());
  for (const LayerKind& kind : layer_kinds()) {  // an unknown name is for the parser to complain about
    if (kind.name == model && model != options.model.model) options.layer = kind.default_config();
  }
  return options;
}

std::vector<OptionGroup> option_groups(TrainOptions& options) {
  return {{"Data", data_fields(options)},
          {"Model", model_fields(options)},
          {"Training", training_fields(options)},
          {"Run", run_fields(options)}};
}

Fields all_fields(TrainOptions& options) {
  Fields result;
  for (const OptionGroup& group : option_groups(options)) {
    result.insert(result.end(), group.fields.begin(), group.fields.end());
  }
  return result;
}

TrainOptions train_options_from_json(const std::string& json, const SavedModel& saved) {
  TrainOptions options{.model = saved.model->config(), .layer = saved.model->layer_config(), .threads = threads()};
  fields_from_json("options of training", json, all_fields(options));
  return options;
}

std::string to_json(TrainOptions options) { return fields_to_json(all_fields(options)); }

void settle(TrainOptions& options) {
  if (std::isnan(options.min_lr)) options.min_lr = options.lr / 20;
  parse_split(options.split);
  check<ValueError>(options.min_lr <= options.lr, "--min-lr", "must not exceed --lr: got {} and {}", options.min_lr,
                    options.lr);
  check<ValueError>(options.warmup <= options.steps, "--warmup", "must not exceed --steps: got {} and {}",
                    options.warmup, options.steps);
  check<ValueError>(!options.out.empty(), "--out", "must name a folder: got \"\"");
}

}  // namespace carousel::examples
