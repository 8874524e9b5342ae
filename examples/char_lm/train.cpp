#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "char_lm/baselines.h"
#include "char_lm/interrupt.h"
#include "char_lm/loss_picture.h"
#include "char_lm/run.h"
#include "common/numbers.h"
#include "common/patience.h"

namespace carousel::examples {

namespace {

// A word of a command line that a shell reads back as it is.
std::string quoted(const std::string& word) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("/._-+", c) != nullptr; };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Why a run must end before its last step; empty when it need not.
std::string reason_to_end(const Run& run, const TrainOptions& options) {
  if (options.stop_after > 0 && run.step() >= options.stop_after) return "--stop-after";
  if (run.seconds() >= run.limits().seconds) return "--time-limit";
  if (run.progress().tokens >= run.limits().tokens) return "--token-budget";
  const bool stalls = options.early_stop > 0 && run.progress().validations_since_best >= options.early_stop;
  return stalls ? "--early-stop" : "";
}

// config.json tells how a run began; one that goes on keeps it.
void write_config(const TrainOptions& options) {
  const std::string path = options.out + "/config.json", temporary = path + ".tmp";
  if (!options.resume.empty() && std::filesystem::exists(path)) return;
  std::ofstream file(temporary, std::ios::binary);
  file << options.as_config;
  file.close();
  check<IoError>(file.good(), "--out", "cannot write {}: {}", temporary, std::strerror(errno));
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  check<IoError>(!error, "--out", "cannot write {}: {}", path, error.message());
}

// Nothing without a validation part, on which they are measured.
std::optional<Baselines> baselines_of(const Corpus& corpus) {
  if (corpus.validation.numel() < 2) return std::nullopt;
  return baselines_of(corpus, corpus.validation);
}

void print_beginning(const Run& run, const TrainOptions& options, const std::optional<Baselines>& without_model) {
  const Corpus& corpus = run.corpus();
  fmt::print("text: {}\n", options.text.empty() ? "stories (embedded)" : options.text);
  fmt::print("{} parameters, {} symbols; {} characters to learn from, {} for validation\n", run.parameter_count(),
             corpus.vocabulary.size(), corpus.train.numel(), corpus.validation.numel());
  if (without_model) {
    fmt::print("{}\n", to_string(*without_model));
  } else {
    tell("note: too few characters for a validation: there is none");
  }
  if (run.step() > 0) fmt::print("going on after step {}\n", run.step());
}

void print_end(const Run& run) {
  const auto text = [](double nats) { return fmt::format("{:.4f} nats ({:.4f} bits)", nats, bits(nats)); };
  const Record& last = run.last();
  fmt::print("loss per character: train {}{}\n", text(last.train_loss),
             last.val_loss ? ", validation " + text(*last.val_loss) : "");
  if (const auto recall = run.recall()) fmt::print("{}\n", to_string(*recall));
  fmt::print("{} steps in {:.1f} s\ncheckpoint: {}\n", run.step(), run.seconds(), run.path());
}

// When a signal ends a run, somebody waits: then there is none.
void print_picture(const TrainOptions& options, const std::optional<Baselines>& without_model) {
  std::vector<Baseline> lines;
  if (without_model) {
    lines = {{.name = "uniform", .nats = without_model->uniform}};
    const auto best = std::min_element(without_model->ngrams.begin(), without_model->ngrams.end());
    lines.push_back({.name = fmt::format("{}-gram", best - without_model->ngrams.begin() + 1), .nats = *best});
  }
  const std::string picture = draw_losses(options.out, lines);
  if (!picture.empty()) fmt::print("{}\n", picture);
}

void print_ended_early(const Run& run, const TrainOptions& options, const std::string& reason,
                       const std::string& program) {
  fmt::print("stopped by {} after step {}; checkpoint: {}\nsample from it: {} sample {}\ngo on: {} train --resume {}\n",
             reason, run.step(), run.path(), quoted(program), quoted(options.out), quoted(program),
             quoted(options.out));
}

}  // namespace

int train(const TrainOptions& options, const std::string& program) {
  use_threads(options.threads);
  const FlushDenormals faster;
  print_header();
  const InterruptGuard interrupt;
  const auto interrupted = [&interrupt] { return interrupt.interrupted(); };
  Run run(options);
  run.begin();
  write_config(options);
  const std::optional<Baselines> without_model = baselines_of(run.corpus());
  print_beginning(run, options, without_model);
  run.finish_step(interrupted);
  std::string reason = reason_to_end(run, options);
  while (run.step() < options.steps && reason.empty() && !interrupted()) {
    run.update();
    run.finish_step(interrupted);
    reason = reason_to_end(run, options);
  }
  run.clear_bar();
  if (run.step() < options.steps) run.save();
  run.check_saved();
  if (!interrupted() && run.step() == options.steps) {
    print_end(run);
    print_picture(options, without_model);
    return 0;
  }
  if (!interrupted()) print_picture(options, without_model);
  print_ended_early(run, options, interrupted() ? fmt::format("signal {}", interrupt.signal()) : reason, program);
  return interrupt.exit_code();
}

}  // namespace carousel::examples
