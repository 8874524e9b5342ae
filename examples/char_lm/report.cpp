#include "char_lm/report.h"

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/runtime.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/options.h"
#include "common/progress_line.h"
#include "common/terminal.h"

namespace carousel::examples {

namespace {

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

}  // namespace

std::string to_json(Record record) {
  Fields fields = {{.name = "step", .target = &record.step, .help = ""},
                   {.name = "tokens", .target = &record.tokens, .help = ""},
                   {.name = "train_loss", .target = &record.train_loss, .help = ""}};
  if (record.val_loss) fields.push_back({.name = "val_loss", .target = &*record.val_loss, .help = ""});
  fields.push_back({.name = "tokens_per_s", .target = &record.tokens_per_s, .help = ""});
  fields.push_back({.name = "grad_norm", .target = &record.grad_norm, .help = ""});
  fields.push_back({.name = "lr", .target = &record.lr, .help = ""});
  fields.push_back({.name = "peak_rss_mib", .target = &record.peak_rss_mib, .help = ""});
  return fields_to_json(fields);
}

double bits(double nats) { return nats / std::log(2.0); }

Reporter::Reporter(const Limits& limits) : limits_(limits) {}

void Reporter::take_folder(const std::string& folder) { log_.open(folder); }

void Reporter::begin_log() { log_.keep(0); }

void Reporter::continue_log(int64_t step, const Progress& progress) {
  progress_ = progress;
  record_.step = first_step_ = step;
  record_.tokens = first_tokens_ = progress.tokens;
  record_.grad_norm = progress.last_grad_norm;
  record_.lr = progress.last_lr;
  const int64_t found = log_.keep(progress.log_lines);
  if (found < progress.log_lines) {
    tell(fmt::format("note: {} has lost lines: {} are left of {}", log_.path(), found, progress.log_lines));
    progress_.log_lines = found;
  }
}

void Reporter::step(double loss, int64_t tokens, double grad_norm, double lr) {
  const auto now = Clock::now();
  progress_.seconds += std::chrono::duration<double>(now - mark_).count();
  mark_ = now;
  progress_.losses += loss;
  progress_.updates += 1;
  progress_.new_tokens += tokens;
  progress_.tokens += tokens;
  record_.step += 1;
  record_.tokens = progress_.tokens;
  record_.grad_norm = progress_.last_grad_norm = grad_norm;
  record_.lr = progress_.last_lr = lr;
  if (now - shown_ > std::chrono::milliseconds(100)) show_bar(loss);
}

void Reporter::skip_step(int64_t tokens) {
  progress_.tokens += tokens;
  record_.tokens = progress_.tokens;
  record_.step += 1;
}

void Reporter::record(std::optional<double> val_loss) {
  if (progress_.updates == 0) return;
  record_.train_loss = progress_.losses / static_cast<double>(progress_.updates);
  record_.tokens_per_s = static_cast<double>(progress_.new_tokens) / progress_.seconds;
  record_.val_loss = val_loss;
  record_.peak_rss_mib = peak_rss_mib();
  log_.append(to_json(record_));
  clear_bar();
  const auto loss = [](double nats) { return fmt::format("{:.4f} nats ({:.3f} bits)", nats, bits(nats)); };
  fmt::print("step {}/{}  train {}{}  {:.0f} tokens/s  norm {:.2f}  lr {:.2e}  {:.1f} s, {} left\n", record_.step,
             limits_.steps, loss(record_.train_loss), val_loss ? "  validation " + loss(*val_loss) : "",
             record_.tokens_per_s, record_.grad_norm, record_.lr, seconds(), time_text(seconds_left()));
  std::fflush(stdout);
  progress_.losses = progress_.seconds = 0;
  progress_.updates = progress_.new_tokens = 0;
  progress_.recorded_step = record_.step;
  progress_.log_lines += 1;
  mark_ = Clock::now();
}

bool Reporter::note_validation(double loss) {
  const bool best = progress_.best_step < 0 || loss < progress_.best_loss;
  progress_.validated_step = record_.step;
  progress_.validations_since_best = best ? 0 : progress_.validations_since_best + 1;
  if (best) {
    progress_.best_loss = loss;
    progress_.best_step = record_.step;
  }
  return best;
}

double Reporter::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

// At the pace of this process so far; whichever limit comes first.
double Reporter::seconds_left() const {
  const double passed = seconds();
  const auto until = [passed](int64_t first, int64_t now, int64_t last) {
    return static_cast<double>(last - now) * passed / static_cast<double>(std::max<int64_t>(now - first, 1));
  };
  const double left = std::min({until(first_step_, record_.step, limits_.steps),
                                until(first_tokens_, record_.tokens, limits_.tokens), limits_.seconds - passed});
  return std::max(left, 0.0);
}

void Reporter::show_bar(double loss) {
  shown_ = mark_;
  const std::optional<int64_t> columns = terminal_columns(STDOUT_FILENO);  // people resize it
  if (!columns) return;
  const std::string line =
      progress_line({.step = record_.step,
                     .steps = limits_.steps,
                     .loss = loss,
                     .grad_norm = record_.grad_norm,
                     .lr = record_.lr,
                     .tokens_per_s = static_cast<double>(progress_.new_tokens) / std::max(progress_.seconds, 1e-9),
                     .seconds_left = seconds_left()},
                    *columns);
  fmt::print("\r{}\x1b[K", line);
  std::fflush(stdout);
  bar_shown_ = true;
}

void Reporter::clear_bar() {
  if (!bar_shown_) return;
  fmt::print("\r\x1b[K");
  std::fflush(stdout);
  bar_shown_ = false;
}

void Reporter::note(const std::string& line) {
  clear_bar();
  tell("note: " + line);
}

void print_header() {
  tell(to_string(runtime_info()));
  check_blas();
}

}  // namespace carousel::examples
