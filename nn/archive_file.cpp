#include <carousel/nn/archive.h>

#include <carousel/nn/archive_payload.h>
#include <carousel/nn/digest.h>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <streambuf>

namespace carousel {
namespace {

constexpr std::string_view magic = "CAROUSEL";
constexpr size_t version_at = 8;
constexpr size_t length_at = 12;
constexpr size_t digest_at = 20;
constexpr size_t header_bytes = digest_at + 32;

using Block = std::array<char, 1 << 16>;

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.digest();
}

void put_number(std::string& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t get_number(std::string_view bytes, size_t at, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)])} << (8 * i);
  }
  return value;
}

std::string make_header(std::string_view payload) {
  std::string header(magic);
  put_number(header, Archive::format_version, 4);
  put_number(header, payload.size(), 8);
  return header + sha256(payload);
}

[[noreturn]] void fail(std::string_view what, const std::string& path, int reason) {
  throw IoError(fmt::format("[archive] cannot {} {}: {}", what, path, std::strerror(reason)));
}

// An open file; closed at the end of the scope unless `close` came first.
class File {
 public:
  File(const std::string& path, int flags, std::string_view what)
      : path_(path), what_(what), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    expect(descriptor_ >= 0);
  }
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  struct stat status() const {
    struct stat status {};
    expect(::fstat(descriptor_, &status) == 0);
    return status;
  }

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      expect(written >= 0 || errno == EINTR);
      bytes.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
    }
  }

  // What stands at `at`, up to `count` bytes; fewer at the end of the file.
  std::string_view read(char* bytes, size_t count, uint64_t at) const {
    size_t filled = 0;
    while (filled < count) {
      const ssize_t got = ::pread(descriptor_, bytes + filled, count - filled, static_cast<off_t>(at + filled));
      expect(got >= 0 || errno == EINTR);
      if (got == 0) break;
      filled += got > 0 ? static_cast<size_t>(got) : 0;
    }
    return {bytes, filled};
  }

  void flush() const { expect(::fsync(descriptor_) == 0); }
  void close() { expect(::close(std::exchange(descriptor_, -1)) == 0); }

 private:
  void expect(bool success) const {
    if (!success) fail(what_, path_, errno);
  }

  std::string path_;
  std::string what_;
  int descriptor_;
};

// A stream over a file from `begin` to `end`, a block at a time.
class FileBuffer : public std::streambuf {
 public:
  FileBuffer(const File& file, uint64_t begin, uint64_t end, const std::string& path)
      : file_(file), at_(begin), end_(end), path_(path) {}

  std::string_view next_block() {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(block_.size(), end_ - at_));
    const std::string_view bytes = file_.read(block_.data(), wanted, at_);
    check<FormatError>(bytes.size() == wanted, "load", "{} is cut off: it was written to while it was read", path_);
    at_ += bytes.size();
    return bytes;
  }

 private:
  int_type underflow() override {
    const std::string_view bytes = next_block();
    setg(block_.data(), block_.data(), block_.data() + bytes.size());
    return bytes.empty() ? traits_type::eof() : traits_type::to_int_type(block_.front());
  }

  const File& file_;
  uint64_t at_;
  uint64_t end_;
  const std::string& path_;
  Block block_;
};

// Removes a file at the end of the scope, unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) { ::unlink(path_.c_str()); }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  void rename_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) fail("write", target, errno);
    path_.clear();
  }

 private:
  std::string path_;
};

// Renaming would put a file in the place of a device or a pipe.
void check_target(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) fail("write", path, EISDIR);
  check<IoError>(S_ISREG(status.st_mode), "archive", "cannot write {}: not a regular file", path);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// What a file is that is no archive.
std::string_view guess(std::string_view header) {
  if (header.starts_with("PK\3\4")) return "it is a zip file, as PyTorch writes";
  if (header.starts_with("\x1F\x8B")) return "it is compressed with gzip";
  if (header.starts_with("\x89PNG")) return "it is a PNG picture";
  if (header.size() > 8 && header[8] == '{') return "it looks like a safetensors file";
  return "it begins with other bytes";
}

void check_header(std::string_view header, uint64_t file_bytes, const std::string& path) {
  check<FormatError>(header.substr(0, magic.size()) == magic.substr(0, header.size()) && !header.empty(), "load",
                     "{} is not a Carousel archive: {}", path, guess(header));
  check<FormatError>(header.size() == header_bytes, "load", "{} is cut off: got {} bytes, the header alone has {}",
                     path, file_bytes, header_bytes);
  const uint64_t version = get_number(header, version_at, 4);
  check<FormatError>(version == Archive::format_version, "load",
                     "{} has a format version that is not understood: got {}, understood is {}", path, version,
                     Archive::format_version);
  const uint64_t length = get_number(header, length_at, 8);
  const uint64_t got = file_bytes - header_bytes;
  check<FormatError>(length == got, "load", "{} is {}: got {} bytes after the header, which promises {}", path,
                     got < length ? "cut off" : "too long", got, length);
}

}  // namespace

void save_archive(const Archive& archive, const std::string& path) {
  check_target(path);
  const std::string payload = encode_payload(archive);
  TemporaryFile temporary(path + ".tmp");
  File file(temporary.path(), O_WRONLY | O_CREAT | O_EXCL, "write");
  file.write(make_header(payload));
  file.write(payload);
  file.flush();
  file.close();
  temporary.rename_to(path);
  File(folder_of(path), O_RDONLY | O_DIRECTORY, "flush").flush();  // the new name must survive a power cut too
}

Archive load_archive(const std::string& path) {
  const File file(path, O_RDONLY | O_NONBLOCK, "read");  // a pipe without a writer must not hang
  const struct stat status = file.status();
  if (S_ISDIR(status.st_mode)) fail("read", path, EISDIR);
  check<IoError>(S_ISREG(status.st_mode), "archive", "cannot read {}: not a regular file", path);
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  std::array<char, header_bytes> header_block;
  const std::string_view header = file.read(header_block.data(), header_bytes, 0);
  check_header(header, file_bytes, path);

  Sha256 sum;
  FileBuffer bytes(file, header_bytes, file_bytes, path);
  for (std::string_view block = bytes.next_block(); !block.empty(); block = bytes.next_block()) sum.add(block);
  check<FormatError>(sum.digest() == header.substr(digest_at), "load", "{} is damaged: its checksum does not match",
                     path);
  FileBuffer payload(file, header_bytes, file_bytes, path);
  return decode_payload(payload, file_bytes - header_bytes, path);
}

}  // namespace carousel
