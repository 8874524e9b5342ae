#pragma once

#include <carousel/nn/saved_model.h>

#include <limits>
#include <string>

#include "common/options.h"

namespace carousel::examples {

/// What `char_lm train` may be told. The defaults bring the embedded stories to a good loss within two minutes on two
/// cores.
struct TrainOptions {
  std::string text = {};  ///< a file; empty: the embedded stories
  std::string split = "nanogpt";

  CharacterModelConfig model = {};  ///< but for the size of the vocabulary, which the text decides
  LayerConfig layer;

  int64_t seq_length = 64;
  int64_t batch_size = 32;
  int64_t steps = 3000;
  double lr = 4e-3;
  double min_lr = std::numeric_limits<double>::quiet_NaN();  ///< unset: lr / 20
  int64_t warmup = 100;                                      ///< steps
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.01;
  double grad_clip = 1;  ///< 0: off

  int64_t seed = 1;
  int64_t threads;
  std::string out = "out";
  int64_t eval_interval = 1000;  ///< steps
  std::string init_from = {};    ///< empty: fresh weights
};

/// The defaults that `arguments` ask for: --model decides which options the layer has, --init-from which sizes the
/// model has.
TrainOptions default_train_options(const std::vector<std::string>& arguments);

/// The options of a run, as its checkpoint keeps them.
TrainOptions train_options_from_json(const std::string& json, const SavedModel& saved);
std::string to_json(TrainOptions options);

std::vector<OptionGroup> option_groups(TrainOptions& options);  ///< as --help shows them
Fields all_fields(TrainOptions& options);

/// Fills in what depends on other options. Throws ValueError for options that do not go together.
void settle(TrainOptions& options);

struct SampleOptions {
  std::string checkpoint;  ///< a file, or the folder of a run
  std::string prompt;
  int64_t length = 400;  ///< symbols after the prompt
  double temperature = 1;
  int64_t top_k = 0;  ///< 0: no limit
  int64_t seed = 1;
  bool json = false;
};

struct EvalOptions {
  std::string checkpoint;
  std::string text;   ///< empty: the text of training
  std::string split;  ///< empty: the split of training
  bool json = false;
};

struct InfoOptions {
  std::string checkpoint;
  bool json = false;
};

// The commands, each in a file of its own; what they return is the exit code.
int train(const TrainOptions& options);
int sample(const SampleOptions& options);
int eval(const EvalOptions& options);
int info(const InfoOptions& options);

}  // namespace carousel::examples
