#include <carousel/nn/evaluate.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/checkpoint.h>
#include <carousel/optim/clip.h>
#include <carousel/optim/schedule.h>
#include <carousel/optim/windows.h>
#include <carousel/tensor/runtime.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "char_lm/corpus.h"
#include "char_lm/interrupt.h"
#include "char_lm/options.h"
#include "char_lm/report.h"

namespace carousel::examples {

namespace {

constexpr int64_t log_interval = 100;  // steps between records

CharacterModel make_model(const TrainOptions& options, int64_t vocabulary_size, Rng& rng) {
  CharacterModelConfig config = options.model;
  config.vocabulary_size = vocabulary_size;
  return CharacterModel(config, options.layer, rng);
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  check<IoError>(!error, "--out", "cannot make the folder {}: {}", path, error.message());
}

std::optional<double> validate(const CharacterModel& model, const Tensor& validation) {
  if (validation.numel() < 2) return std::nullopt;
  return evaluate(model, validation);
}

void print_end(const Record& last, const std::string& checkpoint) {
  const auto text = [](double nats) { return fmt::format("{:.4f} nats ({:.4f} bits)", nats, bits(nats)); };
  fmt::print("loss per character: train {}{}\ncheckpoint: {}\n", text(last.train_loss),
             last.val_loss ? ", validation " + text(*last.val_loss) : "", checkpoint);
}

}  // namespace

int train(const TrainOptions& options) {
  set_threads(static_cast<int>(options.threads));
  print_header();
  const InterruptGuard interrupt;

  std::optional<Archive> start;
  if (!options.init_from.empty()) start = load_archive(checkpoint_path(options.init_from));
  const Corpus corpus =
      load_corpus(options.text, options.split, start ? std::optional(start->text("vocabulary")) : std::nullopt);
  TrainingWindows windows(corpus.train, options.batch_size, options.seq_length, WindowOrder::contiguous);

  Rng rng(static_cast<uint64_t>(options.seed));
  CharacterModel model = make_model(options, corpus.vocabulary.size(), rng);
  if (start) load_weights(*start, model);
  AdamW optimizer(model.parameters(),
                  {.beta1 = options.beta1, .beta2 = options.beta2, .weight_decay = options.weight_decay});
  const WarmupCosine rate{.peak = options.lr, .floor = options.min_lr, .warmup = options.warmup, .end = options.steps};
  fmt::print("{} parameters, {} symbols; {} characters to learn from, {} for validation\n", model.parameter_count(),
             corpus.vocabulary.size(), corpus.train.numel(), corpus.validation.numel());
  if (corpus.validation.numel() < 2) fmt::print(stderr, "note: too few characters for a validation: there is none\n");

  make_folder(options.out);
  Reporter report(options.out, options.steps);
  const std::string path = checkpoint_path(options.out);
  State state = model.initial_state(options.batch_size);
  const auto save = [&](int64_t step) {
    save_checkpoint(
        path, model, corpus.vocabulary.symbols(), optimizer,
        {.step = step, .position = windows.position(), .rng = rng, .carried = state, .options = to_json(options)});
  };
  save(0);

  for (int64_t step = 1; step <= options.steps && !interrupt.interrupted(); ++step) {
    const Window window = windows.next(rng);
    if (window.starts) state = model.initial_state(options.batch_size);
    const LossResult result = model.loss(window.inputs, window.targets, state, {.dropout_key = rng.next_u64()});
    const double loss = result.loss.value().item();
    check<ValueError>(std::isfinite(loss), "train",
                      "loss must be finite: got {} at step {}; a smaller --lr may help; {} holds the last save", loss,
                      step, path);
    optimizer.zero_grad();
    result.loss.backward();
    const double norm =
        options.grad_clip > 0 ? clip_grad_norm(model.parameters(), options.grad_clip) : grad_norm(model.parameters());
    const double lr = rate.rate(step - 1);
    optimizer.step(lr);
    state = result.state.detach();  // the past stays, its gradient ends
    report.step(loss, window.inputs.numel(), norm, lr);

    const bool last = step == options.steps;
    if (last || step % options.eval_interval == 0) {
      report.record(validate(model, corpus.validation));
      save(step);
    } else if (step % log_interval == 0) {
      report.record(std::nullopt);
    }
  }
  const int64_t done = report.last().step;
  if (done < options.steps) {
    save(done);
    report.record(std::nullopt);
    fmt::print(
        "stopped by signal {} after step {}; checkpoint: {}\nsample from it: char_lm sample {}\n"
        "train on from its weights: char_lm train --init-from {}\n",
        interrupt.signal(), done, path, options.out, options.out);
    return interrupt.exit_code();
  }
  print_end(report.last(), path);
  return 0;
}

}  // namespace carousel::examples
