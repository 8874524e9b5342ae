#include <carousel/nn/evaluate.h>
#include <carousel/nn/saved_model.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/checkpoint.h>
#include <carousel/optim/clip.h>
#include <carousel/optim/schedule.h>
#include <carousel/optim/windows.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "char_lm/checkpoints.h"
#include "char_lm/corpus.h"
#include "char_lm/interrupt.h"
#include "char_lm/options.h"
#include "char_lm/report.h"
#include "common/patience.h"

namespace carousel::examples {

namespace {

CharacterModelConfig model_config(const TrainOptions& options, int64_t vocabulary_size) {
  CharacterModelConfig config = options.model;
  config.vocabulary_size = vocabulary_size;
  return config;
}

const std::string& made_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  check<IoError>(!error, "--out", "cannot make the folder {}: {}", path, error.message());
  return path;
}

// A word of a command line that a shell reads back as it is.
std::string quoted(const std::string& word) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("/._-+", c) != nullptr; };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// run -> run-2, or the first after it that holds no run.
std::string free_folder(const std::string& folder) {
  std::string stem = folder;
  while (stem.size() > 1 && stem.back() == '/') stem.pop_back();
  int number = 2;
  while (holds_run(fmt::format("{}-{}", stem, number))) ++number;
  return fmt::format("{}-{}", stem, number);
}

// One run of training: what is learnt from, what learns, and what is written.
class Run {
 public:
  explicit Run(const TrainOptions& options)
      : options_(options),
        corpus_(corpus_of(options)),
        windows_(corpus_.train, options.batch_size, options.seq_length,
                 options.windows == "random" ? WindowOrder::random : WindowOrder::contiguous),
        rng_(static_cast<uint64_t>(options.seed)),
        model_(model_config(options, corpus_.vocabulary.size()), options.layer, rng_),
        optimizer_(model_.parameters(),
                   {.beta1 = options.beta1, .beta2 = options.beta2, .weight_decay = options.weight_decay}),
        rate_{.peak = options.lr, .floor = options.min_lr, .warmup = options.warmup, .end = options.steps},
        state_(model_.initial_state(options.batch_size)),
        path_(checkpoint_in(made_folder(options.out))),
        report_(options.steps) {
    if (options.start) load_weights(*options.start, model_);
  }

  int64_t step() const { return report_.last().step; }

  // Everything that could fail before training has succeeded by now: a log that is there may go.
  void begin() {
    save();
    report_.begin_log(options_.out);
  }

  // Forward, backward, clip, step: one window.
  void update() {
    const Window window = windows_.next(rng_);
    if (window.starts) state_ = model_.initial_state(options_.batch_size);
    SequenceOptions pass;
    pass.dropout_key = rng_.next_u64();
    const LossResult result = model_.loss(window.inputs, window.targets, state_, pass);
    const double loss = result.loss.value().item();
    check<ValueError>(std::isfinite(loss), "train", "loss must be finite: got {} at step {}; {}", loss, step() + 1,
                      advice());
    optimizer_.zero_grad();
    result.loss.backward();
    const double lr = rate_.rate(step());
    const double norm = clip_and_step(lr);
    state_ = model_.carry(result.state);  // the past stays, its gradient ends
    report_.step(loss, window.inputs.numel(), norm, lr);
  }

  // Saves first, so that an end during validation loses nothing.
  void save_and_validate() {
    save();
    if (corpus_.validation.numel() < 2) return record();
    const double loss = evaluate(model_, corpus_.validation, quick_reading(corpus_.validation.numel()));
    check<ValueError>(std::isfinite(loss), "train", "validation loss must be finite: got {} at step {}; {}", loss,
                      step(), advice());
    report_.record(loss);
  }

  void record() { report_.record(std::nullopt); }

  void save() const {
    check_usable();
    save_checkpoint(path_, model_, corpus_.vocabulary.symbols(), optimizer_,
                    {.step = step(),
                     .position = windows_.position(),
                     .rng = rng_,
                     .carried = state_,
                     .options = to_json(options_)});
  }

  void print_beginning() const {
    fmt::print("text: {}\n", options_.text.empty() ? "stories (embedded)" : options_.text);
    fmt::print("{} parameters, {} symbols; {} characters to learn from, {} for validation\n", model_.parameter_count(),
               corpus_.vocabulary.size(), corpus_.train.numel(), corpus_.validation.numel());
    if (corpus_.validation.numel() < 2) {
      tell("note: too few characters for a validation: there is none");
    }
  }

  void print_end() const {
    const auto text = [](double nats) { return fmt::format("{:.4f} nats ({:.4f} bits)", nats, bits(nats)); };
    const Record& last = report_.last();
    const double seconds = report_.seconds();
    fmt::print("loss per character: train {}{}\n", text(last.train_loss),
               last.val_loss ? ", validation " + text(*last.val_loss) : "");
    if (const auto recall = recall_on_validation(model_, corpus_)) fmt::print("{}\n", to_string(*recall));
    fmt::print("{} steps in {:.1f} s\ncheckpoint: {}\n", step(), seconds, path_);
  }

  void print_interrupted(int signal, const std::string& program) const {
    fmt::print(
        "stopped by signal {} after step {}; checkpoint: {}\nsample from it: {} sample {}\n"
        "train on from its weights: {} train --init-from {} --out {}\n",
        signal, step(), path_, quoted(program), quoted(options_.out), quoted(program), quoted(options_.out),
        quoted(free_folder(options_.out)));
  }

 private:
  static Corpus corpus_of(const TrainOptions& options) {
    return load_corpus(options.text, options.split,
                       options.start ? std::optional(options.start->text("vocabulary")) : std::nullopt);
  }

  // A checkpoint that only gives NaN must not replace one that works.
  void check_usable() const {
    const Tensor some = corpus_.train.slice(0, {.stop = options_.seq_length + 1});
    bool usable = std::isfinite(evaluate(model_, some));
    for (const NamedParameter& parameter : model_.parameters()) {
      usable = usable && all_finite(parameter.variable.value());
    }
    check<ValueError>(usable, "train", "weights must be finite and give a finite loss: not so after step {}; {}",
                      step(), advice());
  }

  std::string advice() const { return fmt::format("a smaller --lr may help; {} holds the last save", path_); }

  // The norm from before.
  double clip_and_step(double lr) {
    const bool by_norm = options_.grad_clip > 0;
    if (options_.grad_clip_value == 0) {
      return optimizer_.step(lr, by_norm ? StepLimits{.clip_norm = options_.grad_clip} : StepLimits{});
    }
    const std::vector<NamedParameter> parameters = model_.parameters();
    const double norm = by_norm ? clip_grad_norm(parameters, options_.grad_clip) : grad_norm(parameters);
    clip_grad_value(parameters, options_.grad_clip_value);
    optimizer_.step(lr);
    return norm;
  }

  TrainOptions options_;
  Corpus corpus_;
  TrainingWindows windows_;
  Rng rng_;
  CharacterModel model_;
  AdamW optimizer_;
  WarmupCosine rate_;
  State state_;
  std::string path_;
  Reporter report_;
};

}  // namespace

int train(const TrainOptions& options, const std::string& program) {
  use_threads(options.threads);
  const FlushDenormals faster;
  print_header();
  const InterruptGuard interrupt;
  Run run(options);
  run.print_beginning();
  run.begin();
  while (run.step() < options.steps && !interrupt.interrupted()) {
    run.update();
    if (run.step() == options.steps || run.step() % options.eval_interval == 0) {
      run.save_and_validate();
    } else if (run.step() % options.log_interval == 0) {
      run.record();
    }
  }
  if (run.step() < options.steps) {
    run.save();
    run.record();
    run.print_interrupted(interrupt.signal(), program);
    return interrupt.exit_code();
  }
  run.print_end();
  return 0;
}

}  // namespace carousel::examples
