// An archive file, header and all: as the bytes are, and behind a header that is right for them.
#include <carousel/nn/archive.h>
#include <carousel/nn/digest.h>

#include <sys/mman.h>

#include <unistd.h>

#include "fuzzer.h"

namespace carousel::fuzz {
namespace {

void load_file_of(std::string_view bytes) {
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    __builtin_trap();
  }
  expect_refusal_or_success([] { load_archive(path); });
}

std::string header_of(std::string_view payload) {
  std::string header = "CAROUSEL";
  for (int i = 0; i < 4; ++i) header += static_cast<char>(Archive::format_version >> (8 * i));
  for (int i = 0; i < 8; ++i) header += static_cast<char>(payload.size() >> (8 * i));
  Sha256 sum;
  sum.add(payload);
  return header + sum.digest();
}

}  // namespace
}  // namespace carousel::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel::fuzz;
  load_file_of(bytes(data, size));
  load_file_of(header_of(bytes(data, size)) + std::string(bytes(data, size)));
  return 0;
}
