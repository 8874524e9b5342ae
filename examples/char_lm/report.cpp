#include "char_lm/report.h"

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/runtime.h>

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/options.h"

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

Reporter::Reporter(int64_t steps) : steps_(steps), terminal_(isatty(STDOUT_FILENO) == 1) {}

void Reporter::begin_log(const std::string& folder) { log_.open(folder, 0); }

void Reporter::continue_log(const std::string& folder, int64_t step, const Progress& progress) {
  progress_ = progress;
  record_.step = first_step_ = step;
  record_.tokens = progress.tokens;
  const int64_t found = log_.open(folder, progress.log_lines);
  if (found < progress.log_lines) {
    tell(fmt::format("note: {}/log.jsonl has lost lines: {} are left of {}", folder, found, progress.log_lines));
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
  record_.grad_norm = grad_norm;
  record_.lr = lr;
  if (terminal_ && now - shown_ > std::chrono::milliseconds(100)) show_bar(loss);
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
  fmt::print("step {}/{}  train {:.4f}{}  {:.0f} tokens/s  norm {:.2f}  lr {:.2e}  {:.1f} s\n", record_.step, steps_,
             record_.train_loss, val_loss ? fmt::format("  validation {:.4f}", *val_loss) : "", record_.tokens_per_s,
             record_.grad_norm, record_.lr, seconds());
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

void Reporter::show_bar(double loss) {
  winsize window{};
  const int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
  shown_ = mark_;
  const double passed = std::chrono::duration<double>(mark_ - start_).count();
  const auto done = static_cast<double>(record_.step - first_step_), left = static_cast<double>(steps_ - record_.step);
  const std::string facts =
      fmt::format(" {}/{}  loss {:.3f}  norm {:.2f}  lr {:.1e}  {:.0f} tokens/s  {:.0f} s left", record_.step, steps_,
                  loss, record_.grad_norm, record_.lr,
                  static_cast<double>(progress_.new_tokens) / std::max(progress_.seconds, 1e-9), passed * left / done);
  const int64_t width = std::clamp<int64_t>(columns - std::ssize(facts) - 3, 0, 30);
  const auto filled = static_cast<size_t>(width * record_.step / steps_);
  const std::string bar = width > 3 ? fmt::format("[{:-<{}}]", std::string(filled, '#'), width) : "";
  fmt::print("\r{}\x1b[K", (bar + facts).substr(0, static_cast<size_t>(columns - 1)));
  std::fflush(stdout);
}

void Reporter::clear_bar() const {
  if (terminal_) fmt::print("\r\x1b[K");
}

void print_header() {
  tell(to_string(runtime_info()));
  check_blas();
}

}  // namespace carousel::examples
