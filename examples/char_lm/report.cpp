#include "char_lm/report.h"

#include <carousel/nn/fields.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/runtime.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

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

void Reporter::begin_log(const std::string& folder) {
  path_ = folder + "/log.jsonl";
  log_.open(path_);
  check<IoError>(log_.is_open(), "log", "cannot write {}: {}", path_, std::strerror(errno));
}

void Reporter::step(double loss, int64_t tokens, double grad_norm, double lr) {
  const auto now = Clock::now();
  seconds_ += std::chrono::duration<double>(now - mark_).count();
  mark_ = now;
  losses_ += loss;
  updates_ += 1;
  tokens_ += tokens;
  record_.step += 1;
  record_.tokens += tokens;
  record_.grad_norm = grad_norm;
  record_.lr = lr;
  if (terminal_ && now - shown_ > std::chrono::milliseconds(100)) show_bar(loss);
}

void Reporter::record(std::optional<double> val_loss) {
  if (updates_ == 0) return;
  record_.train_loss = losses_ / static_cast<double>(updates_);
  record_.tokens_per_s = static_cast<double>(tokens_) / seconds_;
  record_.val_loss = val_loss;
  record_.peak_rss_mib = peak_rss_mib();
  log_ << to_json(record_) << std::endl;
  check<IoError>(log_.good(), "log", "cannot write {}: {}", path_, std::strerror(errno));
  clear_bar();
  fmt::print("step {}/{}  train {:.4f}{}  {:.0f} characters/s  {:.1f} s\n", record_.step, steps_, record_.train_loss,
             val_loss ? fmt::format("  validation {:.4f}", *val_loss) : "", record_.tokens_per_s, seconds());
  std::fflush(stdout);
  losses_ = seconds_ = 0;
  updates_ = tokens_ = 0;
  mark_ = Clock::now();
}

double Reporter::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void Reporter::show_bar(double loss) {
  constexpr int64_t width = 30;
  shown_ = mark_;
  const auto done = static_cast<size_t>(width * record_.step / steps_);
  const double left = std::chrono::duration<double>(mark_ - start_).count() *
                      static_cast<double>(steps_ - record_.step) / static_cast<double>(record_.step);
  fmt::print("\r[{:-<{}}] step {}/{}  loss {:.3f}  {:.0f} s left\x1b[K", std::string(done, '#'), width, record_.step,
             steps_, loss, left);
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
