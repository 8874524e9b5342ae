#include "char_lm/other_programs.h"

namespace carousel::examples {

namespace {

using Advice = std::map<std::string, std::string>;

// Hardware, precision, bookkeeping: what those programs need and this one does not.
Advice meaningless() {
  Advice advice;
  for (const char* name : {"accurate_gpu_timing",
                           "always_save_checkpoint",
                           "backend",
                           "batchnorm",
                           "bias",
                           "checkpoint_name",
                           "compile",
                           "decay_lr",
                           "device",
                           "dtype",
                           "gpu",
                           "gpu_backend",
                           "gpuid",
                           "memory_benchmark",
                           "n_head",
                           "opencl",
                           "reset_iterations",
                           "savefile",
                           "speed_benchmark",
                           "verbose",
                           "wandb_log",
                           "wandb_project",
                           "wandb_run_name"}) {
    advice[name] = "has no meaning here: leave it out";
  }
  return advice;
}

Advice with(Advice advice, const Advice& more) {
  advice.insert(more.begin(), more.end());
  return advice;
}

}  // namespace

Advice strangers_to_train() {
  const std::string file = "no such option: use --text FILE";
  const std::string schedule = "no such option: use --schedule step and --lr-decay-after, in steps";
  const std::string split = "no such option: use --split 0.9,0.05";
  return with(meaningless(), {{"data_dir", file},
                              {"input_h5", file},
                              {"input_json", file},
                              {"dataset", file},
                              {"max_epochs", "no such option: use --steps; one pass is N / (batch * seq) windows"},
                              {"eval_iters", "no such option: validation reads the whole split"},
                              {"eval_only", "no such option: char_lm eval DIR"},
                              {"learning_rate_decay_after", schedule},
                              {"train_frac", split},
                              {"val_frac", split},
                              {"test_frac", split}});
}

Advice strangers_to_sample() {
  const std::string folder = "no such option: name the folder or file alone, char_lm sample DIR";
  return with(meaningless(), {{"out_dir", folder},
                              {"checkpoint", folder},
                              {"init_from", folder},
                              {"sample", "no such option: --temperature 0 takes always the likeliest"}});
}

}  // namespace carousel::examples
