#pragma once

#include <carousel/tensor/runtime.h>

namespace carousel::test {

/// Gives back the number of threads at the end of a test that sets it.
class RestoreThreads {
 public:
  RestoreThreads() : before_(threads()) {}
  ~RestoreThreads() { set_threads(before_); }
  RestoreThreads(const RestoreThreads&) = delete;
  RestoreThreads& operator=(const RestoreThreads&) = delete;

 private:
  int before_;
};

}  // namespace carousel::test
