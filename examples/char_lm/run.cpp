#include "char_lm/run.h"

#include <carousel/nn/saved_model.h>
#include <carousel/optim/clip.h>
#include <carousel/tensor/compare.h>

#include <cmath>
#include <filesystem>

#include "char_lm/bundle.h"
#include "char_lm/checkpoints.h"
#include "common/numbers.h"

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

OptimizerConfig optimizer_config(const TrainOptions& options) {
  return {.weight_decay = options.weight_decay,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .alpha = options.decay_rate,
          .momentum = options.momentum};
}

Schedule schedule_of(const TrainOptions& options) {
  if (options.schedule == "constant") return ConstantRate{.value = options.lr, .warmup = options.warmup};
  if (options.schedule == "step") {
    return StepRate{.initial = options.lr,
                    .factor = options.lr_decay_factor,
                    .every = options.lr_decay_every,
                    .first = options.lr_decay_after,
                    .floor = options.min_lr,
                    .warmup = options.warmup};
  }
  if (options.schedule == "exponential") {
    return ExponentialRate{.initial = options.lr,
                           .factor = options.lr_decay_factor,
                           .every = options.lr_decay_every,
                           .floor = options.min_lr,
                           .warmup = options.warmup};
  }
  return WarmupCosine{
      .peak = options.lr, .floor = options.min_lr, .warmup = options.warmup, .end = options.lr_decay_steps};
}

Corpus corpus_of(const TrainOptions& options) {
  Corpus corpus = load_corpus(options.text, options.split,
                              options.start ? std::optional(options.start->text("vocabulary")) : std::nullopt);
  const int64_t needed = options.batch_size * options.seq_length + 1;
  check<ValueError>(corpus.train.numel() >= needed, "--text",
                    "--batch-size {} times --seq-length {} need at least {} tokens: got {} to learn from",
                    options.batch_size, options.seq_length, needed, corpus.train.numel());
  return corpus;
}

Limits limits_of(const TrainOptions& options) {
  Limits limits{.steps = options.stop_after > 0 ? std::min(options.steps, options.stop_after) : options.steps};
  if (!options.token_budget.empty()) limits.tokens = parse_count("--token-budget", options.token_budget);
  if (!options.time_limit.empty()) limits.seconds = parse_seconds("--time-limit", options.time_limit);
  return limits;
}

int64_t tokens_of(const std::vector<Pass>& passes) { return std::ssize(passes) * passes.front().window.inputs.numel(); }

// Thrown out of a validation that a signal ends.
struct ValidationEnded {};

}  // namespace

Run::Run(const TrainOptions& options)
    : options_(options),
      corpus_(corpus_of(options)),
      windows_(corpus_.train, options.batch_size, options.seq_length,
               options.windows == "random" ? WindowOrder::random : WindowOrder::contiguous),
      rng_(static_cast<uint64_t>(options.seed)),
      model_(model_config(options, corpus_.vocabulary.size()), options.layer, rng_),
      optimizer_(make_optimizer(options.optimizer, model_.parameters(), optimizer_config(options))),
      schedule_(schedule_of(options)),
      state_(model_.initial_state(options.batch_size)),
      path_(checkpoint_in(made_folder(options.out))),
      report_(limits_of(options)) {
  if (options.start && options.resume.empty()) load_weights(*options.start, model_);
}

void Run::begin() {
  report_.take_folder(options_.out);
  if (options_.resume.empty()) {
    report_.set_fingerprint(corpus_.fingerprint);
    save();
    keep_last_only(options_.out);
    return report_.begin_log();
  }
  Progress progress = progress_of(*options_.start);
  if (progress.text_fingerprint != corpus_.fingerprint) {
    check<ValueError>(
        options_.force, "--resume",
        "must go on with the text it began with: {} is another (SHA-256 {:.12}.., then {:.12}..); --force "
        "goes on with it",
        options_.text, corpus_.fingerprint, progress.text_fingerprint);
    progress.text_fingerprint = corpus_.fingerprint;
  }
  check_carried(*options_.start, state_);
  TrainingState saved = resume(*options_.start, model_, *optimizer_);
  rng_ = saved.rng;
  state_ = saved.carried;
  windows_.seek(saved.position);
  saved_step_ = saved.step;
  report_.continue_log(saved.step, progress);
}

void Run::update() {
  const State state_before = state_;
  const Rng rng_before = rng_;
  const int64_t position_before = windows_.position();
  std::vector<Pass> passes;
  for (int64_t i = 0; i < options_.gradient_accumulation_steps; ++i) {
    Window window = windows_.next(rng_);
    passes.push_back({std::move(window), rng_.next_u64()});
  }
  optimizer_->zero_grad();
  const double lr = rate(schedule_, step());
  try {
    const double loss = run_passes(model_, passes, state_, options_.recompute);
    const double norm = clip_and_step(lr);
    skipped_in_a_row_ = 0;
    report_.step(loss, tokens_of(passes), norm, lr);
  } catch (const NonFiniteError& error) {
    TrainingState before = training_state();
    before.carried = state_before;
    before.rng = rng_before;
    before.position = position_before;
    handle_nonfinite(error, passes, before);
  }
}

// A step that is left out counts as one: the text, the rate and the dropout go on, the state begins anew.
void Run::handle_nonfinite(const NonFiniteError& error, const std::vector<Pass>& passes, const TrainingState& before) {
  constexpr int64_t most_in_a_row = 10;
  const std::string bundle = bundle_in(options_.out, step() + 1);
  if (skipped_in_a_row_ == 0) save_bundle(error, passes, before);
  const bool skips = options_.on_nonfinite == "skip" && ++skipped_in_a_row_ < most_in_a_row;
  const std::string where = fmt::format("{} at step {}", error.what(), step() + 1);
  if (!skips) {
    throw NonFiniteError(fmt::format("{}; {}; char_lm replay {} looks for the cause", where, advice(), bundle));
  }
  report_.note(fmt::format("{}: the step is left out; {} holds it", where, bundle));
  state_ = model_.initial_state(options_.batch_size);
  report_.skip_step(tokens_of(passes));
}

void Run::save_bundle(const NonFiniteError& error, const std::vector<Pass>& passes, const TrainingState& before) {
  Archive bundle = make_checkpoint(model_, corpus_.vocabulary.symbols(), *optimizer_, before);
  add_to_bundle(passes, error.what(), model_, bundle);
  try {
    save_archive(bundle, bundle_in(options_.out, step() + 1));
  } catch (const IoError& failure) {
    report_.note(failure.what());  // what is wrong with the step matters more
  }
}

// The norm from before.
double Run::clip_and_step(double lr) {
  const bool by_norm = options_.grad_clip > 0;
  if (options_.grad_clip_value == 0) {
    return optimizer_->step(lr, by_norm ? StepLimits{.clip_norm = options_.grad_clip} : StepLimits{});
  }
  const std::vector<NamedParameter> parameters = model_.parameters();
  const double norm = by_norm ? clip_grad_norm(parameters, options_.grad_clip) : grad_norm(parameters);
  clip_grad_value(parameters, options_.grad_clip_value);  // leaves what is not finite for the step to refuse
  optimizer_->step(lr);
  return norm;
}

bool Run::is_due(int64_t interval) const { return interval > 0 && step() > 0 && step() % interval == 0; }

// The checkpoint comes first: an end during validation loses nothing, and a resumed run makes up for it.
void Run::finish_step(const std::function<bool()>& interrupted) {
  const bool last = step() == options_.steps;
  const bool evaluates = is_due(options_.eval_interval) || last;
  if (is_due(options_.checkpoint_every) || evaluates) save();
  if (evaluates && corpus_.validation.numel() >= 2) {
    validate(interrupted);
  } else if (evaluates || is_due(options_.log_interval)) {
    record(std::nullopt);
  }
}

void Run::validate(const std::function<bool()>& interrupted) {
  if (progress().validated_step == step()) return;
  EvaluateOptions reading = quick_reading(corpus_.validation.numel());
  reading.before_window = [&interrupted] {
    if (interrupted()) throw ValidationEnded();
  };
  double loss = 0;
  try {
    loss = evaluate(model_, corpus_.validation, reading);
  } catch (const ValidationEnded&) {
    return;
  }
  check<ValueError>(std::isfinite(loss), "train", "validation loss must be finite: got {} at step {}; {}",
                    std::abs(loss), step(), advice());
  const bool best = report_.note_validation(loss);
  record(loss);
  if (!best || saved_step_ != step()) return;
  write("kept as the best", [this] { keep_as(path_, best_checkpoint_in(options_.out)); });
}

void Run::record(std::optional<double> val_loss) {
  write("recorded", [this, val_loss] { report_.record(val_loss); });
}

void Run::save() {
  if (saved_step_ == step()) return;
  write("saved", [this] {
    check_usable();
    save_checkpoint(path_, model_, corpus_.vocabulary.symbols(), *optimizer_, training_state());
    saved_step_ = step();
  });
  if (options_.keep_last == 0 || step() == 0 || saved_step_ != step()) return;
  write("kept", [this] { keep_latest(options_.out, step(), options_.keep_last); });
}

void Run::check_saved() const {
  check<IoError>(saved_step_ == step(), "train", "step {} could not be saved: {} holds step {}", step(), path_,
                 saved_step_);
}

// A failure ends the run, or is told of when the options say so.
void Run::write(std::string_view what, const std::function<void()>& action) {
  try {
    action();
  } catch (const IoError& error) {
    if (options_.on_save_error == "stop" || step() == 0) throw;
    report_.note(fmt::format("step {} could not be {}, training goes on: {}", step(), what, error.what()));
  }
}

TrainingState Run::training_state() const {
  Progress progress = report_.progress();
  return {.step = step(),
          .position = windows_.position(),
          .rng = rng_,
          .carried = state_,
          .options = to_json(options_),
          .progress = fields_to_json(fields(progress))};
}

// A checkpoint that only gives NaN must not replace one that works.
void Run::check_usable() const {
  const Tensor some = corpus_.train.slice(0, {.stop = options_.seq_length + 1});
  bool usable = std::isfinite(evaluate(model_, some));
  for (const NamedParameter& parameter : model_.parameters()) {
    usable = usable && all_finite(parameter.variable.value());
  }
  check<ValueError>(usable, "train", "weights must be finite and give a finite loss: not so after step {}; {}", step(),
                    advice());
}

std::string Run::advice() const { return fmt::format("a smaller --lr may help; {} holds the last save", path_); }

}  // namespace carousel::examples
