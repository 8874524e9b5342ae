#include "char_lm/other_programs.h"

namespace carousel::examples {

namespace {

const std::string only_the_cpu = "must ask for the CPU, which is all there is: leave it out";

// Hardware, precision, bookkeeping: what those programs choose and this one does not.
Strangers of_machines() {
  return {
      {"accurate_gpu_timing", {.advice = "", .granted = {"*"}}},
      {"backend", {.advice = "", .granted = {"*"}}},
      {"gpu_backend", {.advice = "", .granted = {"*"}}},
      {"compile", {.advice = "must be False, since nothing is compiled: leave it out", .granted = {"false"}}},
      {"device", {.advice = only_the_cpu, .granted = {"cpu"}}},
      {"gpu", {.advice = only_the_cpu, .granted = {"-1"}}},
      {"gpuid", {.advice = only_the_cpu, .granted = {"-1"}}},
      {"opencl", {.advice = only_the_cpu, .granted = {"0"}}},
      {"dtype", {.advice = "must be float32, in which everything is computed: leave it out", .granted = {"float32"}}},
      {"verbose", {.advice = "", .granted = {"*"}}}};
}

Strangers with(Strangers strangers, Strangers more) {
  strangers.merge(more);
  return strangers;
}

}  // namespace

Strangers strangers_to_train() {
  const Stranger file = {.advice = "no such option: use --text FILE"};
  const Stranger folder = {.advice = "no such option: use --out DIR; the names in it are fixed"};
  const Stranger split = {.advice = "no such option: use --split 0.9,0.05"};
  const Stranger measured = {.advice = "no such option: log.jsonl tells speed and memory", .granted = {"0"}};
  const Stranger unused = {.advice = "", .granted = {"*"}, .remark = "there is no wandb, but log.jsonl"};
  return with(
      of_machines(),
      {{"always_save_checkpoint", {.advice = "", .granted = {"*"}, .remark = "the last and the best are kept"}},
       {"batchnorm", {.advice = "must be 0, since there is none: leave it out", .granted = {"0"}}},
       {"bias", {.advice = "must be True, since weights have biases: leave it out", .granted = {"true"}}},
       {"checkpoint_name", folder},
       {"savefile", folder},
       {"data_dir", file},
       {"dataset", file},
       {"input_h5", file},
       {"input_json", file},
       {"decay_lr", {.advice = "no such option: use --schedule constant", .granted = {"true"}}},
       {"eval_iters", {.advice = "", .granted = {"*"}, .remark = "validation reads the whole split"}},
       {"eval_only", {.advice = "no such option: use char_lm eval DIR", .granted = {"false"}}},
       {"learning_rate_decay_after", {.advice = "no such option: use --schedule step and --lr-decay-after, in steps"}},
       {"max_epochs", {.advice = "no such option: use --steps; one pass is N / (batch * seq) windows"}},
       {"memory_benchmark", measured},
       {"speed_benchmark", measured},
       {"reset_iterations",
        {.advice = "must be 1: --init-from begins at step 0, and --resume DIR goes on", .granted = {"1"}}},
       {"test_frac", split},
       {"train_frac", split},
       {"val_frac", split},
       {"wandb_log",
        {.advice = "must be False, since there is no wandb: log.jsonl holds the same", .granted = {"false"}}},
       {"wandb_project", unused},
       {"wandb_run_name", unused}});
}

Strangers strangers_to_sample() {
  const Stranger folder = {.advice = "no such option: name the folder or file alone, char_lm sample DIR"};
  return with(of_machines(),
              {{"out_dir", folder},
               {"checkpoint", folder},
               {"init_from", folder},
               {"sample", {.advice = "no such option: --temperature 0 takes always the likeliest", .granted = {"1"}}}});
}

}  // namespace carousel::examples
