#pragma once

#include <carousel/nn/archive.h>
#include <carousel/nn/character_model.h>
#include <carousel/nn/sampling.h>
#include <carousel/tensor/runtime.h>

#include <limits>
#include <memory>
#include <string>

#include "common/options.h"

namespace carousel::examples {

/// What `char_lm train` may be told. The defaults bring the embedded stories near their best loss in a quarter of a
/// minute on two quiet cores.
struct TrainOptions {
  std::string text = {};  ///< absolute path of a file; empty: the embedded stories
  std::string split = "nanogpt";

  CharacterModelConfig model = {};  ///< but for the size of the vocabulary, which the text decides
  LayerConfig layer = layer_kind("rnn").default_config();

  int64_t seq_length = 64;
  int64_t batch_size = 32;
  int64_t steps = 3000;
  std::string optimizer = "adamw";
  std::string schedule = "cosine";
  double lr = 4e-3;
  double min_lr = std::numeric_limits<double>::quiet_NaN();  ///< unset: lr / 20
  int64_t warmup = -1;                                       ///< steps; unset: 100, or a tenth of a short run
  double lr_decay_factor = 0.97;                             ///< of schedules step and exponential
  int64_t lr_decay_every = 1000;                             ///< steps
  int64_t lr_decay_after = -1;                               ///< steps; unset: lr_decay_every
  double momentum = 0;                                       ///< of sgd and rmsprop
  double decay_rate = 0.95;                                  ///< of rmsprop
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.01;
  double grad_clip = 1;                     ///< of the joint norm; 0: off
  double grad_clip_value = 0;               ///< of every element; 0: off
  int64_t gradient_accumulation_steps = 1;  ///< windows of a step
  int64_t lr_decay_steps = 0;               ///< where the cosine ends; unset: steps
  std::string windows = "contiguous";

  int64_t seed = 1;
  int64_t threads = carousel::threads();
  bool recompute = false;  ///< SequenceOptions::recompute
  std::string out = "out";
  int64_t eval_interval = 1000;  ///< steps
  int64_t log_interval = 100;    ///< steps
  int64_t checkpoint_every = 0;  ///< steps, besides those of validations; 0: with these only
  int64_t keep_last = 0;         ///< older checkpoints that stay
  int64_t early_stop = 0;        ///< validations without a better loss that end the run; 0: none do
  std::string on_save_error = "stop";
  std::string on_nonfinite = "stop";
  std::string init_from = {};  ///< empty: fresh weights

  // Of the command line alone; a checkpoint does not keep them.
  int64_t stop_after = 0;         ///< steps of the run in all; 0: no limit
  std::string time_limit = {};    ///< of this process: parse_seconds
  std::string token_budget = {};  ///< of the run in all: parse_count
  std::string resume = {};        ///< folder of the run to go on with
  bool force = false;             ///< with another text
  std::string config = {};        ///< file that the options come from
  std::string preset = {};
  int64_t n_embd = 0;  ///< nanoGPT's one width, for embedding and layers; 0: not given
  bool overwrite = false;
  std::string as_config = {};                 ///< the options as config.json keeps them
  std::shared_ptr<const Archive> start = {};  ///< what init_from or resume names, once it is loaded
};

/// The defaults that a command line and its configuration file ask for: --model decides which options the layer has,
/// --preset sets some.
TrainOptions default_train_options(const std::vector<std::string>& arguments, const Config& config);
Field config_field(std::string& target);  ///< --config

std::vector<OptionGroup> option_groups(TrainOptions& options);  ///< as --help shows them
std::string kinds_of_model();                                   ///< what --help says of --model, a line a kind
/// What to tell who gives an option that only another kind of model has.
Strangers options_of_other_kinds(const TrainOptions& options);

/// The options of a run, as its checkpoint keeps them: data, model, training, and how it was run.
Fields run_fields(TrainOptions& options);
Fields all_fields(TrainOptions& options);
Fields data_fields(TrainOptions& options);
Fields model_fields(TrainOptions& options);
Fields training_fields(TrainOptions& options);
std::string to_json(TrainOptions options);

/// Fills in what depends on other options and on the checkpoint to start from, and says on stderr which of the typed
/// options mean something else here or have no effect. Throws ValueError for options that do
/// not go together, and when the run would destroy another.
void settle(TrainOptions& options, Given given);

struct SampleOptions {
  std::string checkpoint;  ///< a file, or the folder of a run
  std::string prompt;
  std::string prompt_file;
  std::string unknown = "error";  ///< what to do with symbols of the prompt that the model does not know
  std::string stop;               ///< ends a text that holds it; empty: none does
  int64_t length = 400;           ///< symbols after the prompt
  int64_t samples = 1;
  SamplingOptions sampling = {};
  int64_t seed = 1;
  bool logprobs = false;
  bool json = false;
};

struct EvalOptions {
  std::string checkpoint;
  std::string text;   ///< empty: the text of training
  std::string split;  ///< empty: the split of training
  bool json = false;
};

struct ReplayOptions {
  std::string bundle;  ///< what a step that was not finite left
};

struct InfoOptions {
  std::string checkpoint;
  bool json = false;
};

/// The positional argument of the commands that read a checkpoint.
Field checkpoint_field(std::string& target);

// The commands, each in a file of its own; what they return is the exit code.
/// `program` is how this one was called, for the command that goes on with an interrupted run.
int train(const TrainOptions& options, const std::string& program);
Command sample_command(SampleOptions& options);
int eval(const EvalOptions& options);
int info(const InfoOptions& options);
int replay(const ReplayOptions& options);

}  // namespace carousel::examples
