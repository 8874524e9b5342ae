#include "char_lm/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace carousel::examples {

namespace {

volatile std::sig_atomic_t noted_signal = 0;

void note(int signal) {
  if (noted_signal != 0) _exit(128 + signal);  // files are renamed into place, so ending anywhere harms none
  noted_signal = signal;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  noted_signal = 0;
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

int InterruptGuard::signal() const { return noted_signal; }

int InterruptGuard::exit_code() const { return interrupted() ? 128 + signal() : 0; }

}  // namespace carousel::examples
