#include "char_lm/log_file.h"

#include <carousel/tensor/error.h>

#include <sys/file.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace carousel::examples {

namespace {

struct Kept {
  int64_t lines = 0;
  std::streamoff bytes = 0;
};

// The first `count` whole lines of a file.
Kept first_lines(const std::string& path, int64_t count) {
  Kept kept;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; kept.lines < count && std::getline(file, line) && !file.eof(); ++kept.lines) {
    kept.bytes = file.tellg();
  }
  return kept;
}

}  // namespace

LogFile::~LogFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LogFile::fail() const { throw IoError(fmt::format("[log] cannot write {}: {}", path_, std::strerror(errno))); }

void LogFile::open(const std::string& folder) {
  path_ = folder + "/log.jsonl";
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    check<IoError>(errno != EWOULDBLOCK, "log", "another process is writing {}: one run a folder", path_);
    fail();
  }
}

int64_t LogFile::keep(int64_t lines) {
  const Kept kept = first_lines(path_, lines);
  const int cut = ::ftruncate(descriptor_, kept.bytes);
  if (cut != 0 && errno != EINVAL) fail();  // EINVAL: a device, which holds nothing that could be cut
  return kept.lines;
}

void LogFile::append(const std::string& line) {
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  std::string rest = line + "\n";
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      const int reason = errno;
      [[maybe_unused]] const int cut = ::ftruncate(descriptor_, end);  // a device, which cannot be cut, took nothing
      errno = reason;
      fail();
    }
    rest.erase(0, written > 0 ? static_cast<size_t>(written) : 0);
  }
}

}  // namespace carousel::examples
