#pragma once

#include <carousel/nn/evaluate.h>
#include <carousel/optim/checkpoint.h>
#include <carousel/optim/make_optimizer.h>
#include <carousel/optim/schedule.h>
#include <carousel/optim/windows.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "char_lm/corpus.h"
#include "char_lm/options.h"
#include "char_lm/passes.h"
#include "char_lm/report.h"

namespace carousel::examples {

/// One run of training: what is learnt from, what learns, and what is written.
class Run {
 public:
  /// Reads the text, makes or loads the model. Throws what these throw, and ValueError when a resumed run would go on
  /// with another text.
  explicit Run(const TrainOptions& options);

  /// Takes the folder and writes the first checkpoint; a resumed run catches up with what its checkpoint still owed.
  /// Everything that could fail before training has succeeded by then.
  void begin();

  /// One step: forward and backward for every window of it, clip, update. A loss or gradient that is not finite leaves
  /// all weights as they were and a bundle for `char_lm replay`; then it throws NonFiniteError, or leaves the step out
  /// when the options say so.
  void update();
  /// What is due after a step: checkpoint, validation, record. `interrupted` ends a validation early.
  void finish_step(const std::function<bool()>& interrupted);
  /// A checkpoint of this step, unless it has been written.
  void save();
  /// Throws IoError when this step has not been written, which runs that go on without a disk find out at their end.
  void check_saved() const;

  int64_t step() const { return report_.last().step; }
  const Record& last() const { return report_.last(); }
  const Progress& progress() const { return report_.progress(); }
  const Limits& limits() const { return report_.limits(); }
  double seconds() const { return report_.seconds(); }
  void clear_bar() { report_.clear_bar(); }  ///< before anything is printed
  const std::string& path() const { return path_; }
  int64_t parameter_count() const { return model_.parameter_count(); }
  const Corpus& corpus() const { return corpus_; }
  std::optional<Recall> recall() const { return recall_on_validation(model_, corpus_); }

 private:
  bool is_due(int64_t interval) const;
  double clip_and_step(double lr);
  void handle_nonfinite(const NonFiniteError& error, const std::vector<Pass>& passes, const TrainingState& before);
  void validate(const std::function<bool()>& interrupted);
  void record(std::optional<double> val_loss);
  void write(std::string_view what, const std::function<void()>& action);
  void check_usable() const;
  TrainingState training_state() const;
  void save_bundle(const NonFiniteError& error, const std::vector<Pass>& passes, const TrainingState& before);
  std::string advice() const;

  TrainOptions options_;
  Corpus corpus_;
  TrainingWindows windows_;
  Rng rng_;
  CharacterModel model_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  State state_;
  std::string path_;
  Reporter report_;
  int64_t saved_step_ = -1;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace carousel::examples
