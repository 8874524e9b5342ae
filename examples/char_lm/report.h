#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

namespace carousel::examples {

/// One line of log.jsonl.
struct Record {
  int64_t step = 0;                     ///< updates made
  int64_t tokens = 0;                   ///< read since the beginning
  double train_loss = 0;                ///< nats per symbol, mean since the last record
  std::optional<double> val_loss = {};  ///< nats per symbol of the validation part (quick_reading), when it was read
  double tokens_per_s = 0;              ///< of training alone, since the last record
  double grad_norm = 0;                 ///< of the last step, before clipping
  double lr = 0;                        ///< of the last step
  double peak_rss_mib = 0;              ///< most memory the process has held
};
std::string to_json(Record record);

double bits(double nats);

/// Tells what a training loop does: a bar on a terminal, plain lines when piped, and log.jsonl.
class Reporter {
 public:
  explicit Reporter(int64_t steps);

  /// Begins FOLDER/log.jsonl anew, before the first step. Throws IoError.
  void begin_log(const std::string& folder);

  /// After every update.
  void step(double loss, int64_t tokens, double grad_norm, double lr);
  /// Writes what happened since the last record; the time between the last step and this call is not training. Without
  /// a step since the last record there is nothing to write.
  void record(std::optional<double> val_loss);
  const Record& last() const { return record_; }
  double seconds() const;  ///< since the beginning

 private:
  using Clock = std::chrono::steady_clock;
  void show_bar(double loss);
  void clear_bar() const;

  int64_t steps_;
  bool terminal_;
  std::string path_;
  std::ofstream log_;
  Record record_;
  double losses_ = 0;  // sums since the last record
  double seconds_ = 0;
  int64_t updates_ = 0;
  int64_t tokens_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point mark_ = start_;   // until when training time has been counted
  Clock::time_point shown_ = start_;  // when the bar was last drawn
};

/// How every run begins: says on stderr what computes (BLAS build and kernel, SIMD target, threads), and throws
/// ValueError when this BLAS computes wrongly.
void print_header();

}  // namespace carousel::examples
