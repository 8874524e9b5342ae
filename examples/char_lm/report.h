#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "char_lm/log_file.h"
#include "char_lm/progress.h"

namespace carousel::examples {

/// One line of log.jsonl.
struct Record {
  int64_t step = 0;                     ///< updates made
  int64_t tokens = 0;                   ///< read since the beginning
  double train_loss = 0;                ///< nats per token, mean since the last record
  std::optional<double> val_loss = {};  ///< nats per token of the validation part (quick_reading), when it was read
  double tokens_per_s = 0;              ///< of training alone, since the last record
  double grad_norm = 0;                 ///< of the last step, before clipping
  double lr = 0;                        ///< of the last step
  double peak_rss_mib = 0;              ///< most memory the process has held
};
std::string to_json(Record record);

double bits(double nats);

/// When a run ends at the latest.
struct Limits {
  int64_t steps;
  int64_t tokens = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();  ///< of this process
};

/// Tells what a training loop does: a bar on a terminal, plain lines of the same facts, and log.jsonl.
class Reporter {
 public:
  explicit Reporter(const Limits& limits);
  ~Reporter() { clear_bar(); }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// Takes the folder for this run, before anything in it is changed. Throws IoError, also when another run has it.
  void take_folder(const std::string& folder);
  /// Begins log.jsonl anew, before the first step. Throws IoError.
  void begin_log();
  /// Goes on where a checkpoint of `step` was written: what the log tells of later is cut off. Throws IoError.
  void continue_log(int64_t step, const Progress& progress);

  /// After every update.
  void step(double loss, int64_t tokens, double grad_norm, double lr);
  /// The same for a step that was left out: it has no loss.
  void skip_step(int64_t tokens);
  /// Writes what happened since the last record; the time between the last step and this call is not training. Without
  /// a step since the last record there is nothing to write.
  void record(std::optional<double> val_loss);
  /// Notes the loss of a validation; true when it is the best so far.
  bool note_validation(double loss);

  const Record& last() const { return record_; }
  const Progress& progress() const { return progress_; }
  void set_fingerprint(const std::string& text) { progress_.text_fingerprint = text; }
  const Limits& limits() const { return limits_; }
  double seconds() const;              ///< since this process began
  void clear_bar();                    ///< before anything else is printed
  void note(const std::string& line);  ///< tell(), beside the bar

 private:
  using Clock = std::chrono::steady_clock;
  void show_bar(double loss);
  double seconds_left() const;

  Limits limits_;
  bool bar_shown_ = false;
  LogFile log_;
  Record record_;
  Progress progress_;
  int64_t first_step_ = 0, first_tokens_ = 0;  // of this process
  Clock::time_point start_ = Clock::now();
  Clock::time_point mark_ = start_;   // until when training time has been counted
  Clock::time_point shown_ = start_;  // when the bar was last drawn
};

/// How every run begins: says on stderr what computes (BLAS build and kernel, SIMD target, threads), and throws
/// ValueError when this BLAS computes wrongly.
void print_header();

}  // namespace carousel::examples
