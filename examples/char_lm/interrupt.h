#pragma once

namespace carousel::examples {

/// From its construction on, SIGINT and SIGTERM only leave a note, so that the work in hand can be finished and saved.
/// A second signal ends the process at once, with 128 + its number.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const { return signal() != 0; }
  int signal() const;     ///< 0 when there was none
  int exit_code() const;  ///< 128 + signal, by custom; 0 when there was none
};

}  // namespace carousel::examples
