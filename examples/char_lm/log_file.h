#pragma once

#include <cstdint>
#include <string>

namespace carousel::examples {

/// FOLDER/log.jsonl. While it is open it is locked: two runs in one folder would write into each other's files, and the
/// lock goes with the process, however that ends.
class LogFile {
 public:
  LogFile() = default;
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Keeps the first `lines` lines and returns how many there are. Throws IoError with the system's reason, and when
  /// another process has it open.
  int64_t open(const std::string& folder, int64_t lines);
  /// Throws IoError.
  void append(const std::string& line);

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace carousel::examples
