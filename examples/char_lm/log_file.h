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

  /// Throws IoError with the system's reason, and when another process has it open.
  void open(const std::string& folder);
  /// Keeps the first `lines` lines and returns how many there are. Throws IoError.
  int64_t keep(int64_t lines);
  /// The whole line or nothing of it. Throws IoError.
  void append(const std::string& line);

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace carousel::examples
