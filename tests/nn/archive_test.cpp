#include "../examples/temporary_folder.h"
#include "expect_error.h"

#include <carousel/nn/archive.h>
#include <carousel/nn/archive_payload.h>
#include <carousel/nn/layers.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace carousel {
namespace {

using test::expect_error;

constexpr size_t header_bytes = 52;  // magic 8, version 4, length 8, digest 32
constexpr size_t version_at = 8;
constexpr size_t length_at = 12;
constexpr size_t digest_at = 20;

Archive example() {
  Archive archive;
  archive.texts["vocabulary"] = std::string("a\n\0\xC3\xA9", 5);
  archive.texts["empty"] = "";
  archive.tensors["w"] = Tensor::from({1, 2, 3, 4, 5, -0.0}, {2, 3});
  archive.tensors["none"] = zeros({0, 3}, DType::float64);
  archive.tensors["scalar"] = Tensor::scalar(NAN, DType::float64);
  archive.tensors["tokens"] = arange(4);
  archive.tensors["mask"] = Tensor::from(std::vector<bool>{true, false}, {2});
  archive.tensors["view"] = Tensor::from({1, 2, 3, 4}, {2, 2}).transpose(0, 1);
  return archive;
}

class ArchiveFile : public testing::Test {
 protected:
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  // The error of loading `bytes`, which names the file.
  std::string error_of(const std::string& bytes) const {
    write(bytes);
    try {
      load_archive(path_);
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
      return error.what();
    }
    return "nothing was thrown";
  }
  static void expect_holds(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
  }

  examples::TemporaryFolder folder_;
  std::string path_ = folder_.path("model.carousel");
};

TEST_F(ArchiveFile, ComesBackBitForBit) {
  save_archive(example(), path_);
  const Archive loaded = load_archive(path_);
  EXPECT_EQ(loaded.texts, example().texts);
  ASSERT_EQ(loaded.tensors.size(), example().tensors.size());
  for (const auto& [name, tensor] : example().tensors) {
    EXPECT_TRUE(identical(loaded.tensor(name), tensor.contiguous())) << name;
  }
  EXPECT_EQ(loaded.source, path_);
  EXPECT_TRUE(std::signbit(loaded.tensor("w").select(0, 1).select(0, 2).item()));
}

TEST_F(ArchiveFile, BeginsAsDocumented) {
  save_archive({}, path_);
  const std::string bytes = read();
  EXPECT_EQ(bytes.substr(0, version_at), "CAROUSEL");
  EXPECT_EQ(bytes.substr(version_at, 4), std::string("\1\0\0\0", 4));
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(bytes[length_at])), bytes.size() - header_bytes);
}

TEST_F(ArchiveFile, CutAnywhereIsAClearError) {  // HD-31
  save_archive(example(), path_);
  const std::string whole = read();
  for (size_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
    const std::string error = error_of(whole.substr(0, whole.size() * sixteenth / 16));
    expect_holds(error, sixteenth == 0 ? "not a Carousel archive" : "cut off");
  }
  expect_holds(error_of(whole + "12345678"), "too long");
}

TEST_F(ArchiveFile, AnyFlippedBitIsAClearError) {
  save_archive(example(), path_);
  const std::string whole = read();
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    expect_holds(error_of(flipped), at < version_at  ? "not a Carousel archive"
                                    : at < length_at ? "format version"
                                    : at < digest_at ? "after the header"
                                                     : "checksum");
  }
}

TEST_F(ArchiveFile, OtherVersionsAreNamed) {  // HD-34
  save_archive(example(), path_);
  const std::string whole = read();
  for (const int version : {0, 2, 999}) {
    std::string other = whole;
    other[version_at] = static_cast<char>(version & 0xFF);
    other[version_at + 1] = static_cast<char>(version >> 8);
    const std::string error = error_of(other);
    expect_holds(error, "got " + std::to_string(version) + ", understood is 1");
  }
}

// The counts of a payload whose checksum is right: no allocation follows what a file only claims.
TEST(ArchivePayload, CountsBeyondTheFileAreClearErrorsWithoutMemory) {  // HD-31
  const std::string payload = encode_payload(example());
  EXPECT_EQ(decode_payload(payload, "x").texts, example().texts);
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (const uint64_t count : {33316061322250ULL, 1ULL << 40, 1ULL << 63, ~0ULL}) {
    for (size_t at = 1; at + 8 <= payload.size(); ++at) {  // byte 0 tells the byte order
      std::string lying = payload;
      for (size_t byte = 0; byte < 8; ++byte) lying[at + byte] = static_cast<char>(count >> (8 * byte));
      try {
        decode_payload(lying, "x");  // a number of a tensor may be anything; a count may not
      } catch (const FormatError& error) {
        EXPECT_NE(std::string(error.what()).find("x"), std::string::npos);
      }
    }
    std::string first = payload;
    for (size_t byte = 0; byte < 8; ++byte) first[1 + byte] = static_cast<char>(count >> (8 * byte));
    expect_error<FormatError>([&] { decode_payload(first, "x"); }, {"[load]", "x", "does not fit"});
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 * 1024);  // KiB
}

TEST(ArchivePayload, CutAnywhereIsAClearError) {
  const std::string payload = encode_payload(example());
  for (size_t length = 0; length < payload.size(); ++length) {
    expect_error<FormatError>([&] { decode_payload(payload.substr(0, length), "x"); }, {"[load]", "x"});
  }
  expect_error<FormatError>([&] { decode_payload(payload + "1", "x"); }, {"after its last entry"});
}

TEST_F(ArchiveFile, UnwritableTargetsGiveTheReasonAndKeepTheOldFile) {  // HD-30
  expect_error<IoError>([&] { save_archive({}, folder_.path("missing/x")); },
                        {"[archive] cannot write", "missing/x", "No such file or directory"});
  std::filesystem::create_directory(folder_.path("folder"));
  expect_error<IoError>([&] { save_archive({}, folder_.path("folder")); }, {"folder", "Is a directory"});
  expect_error<IoError>([] { save_archive({}, "/dev/full"); }, {"/dev/full", "not a regular file"});
  EXPECT_FALSE(std::filesystem::exists("/dev/full.tmp"));
  save_archive(example(), path_);
  const std::string before = read();
  std::filesystem::create_directory(path_ + ".tmp");  // the temporary file cannot be made
  std::ofstream(path_ + ".tmp/x") << "in the way";
  expect_error<IoError>([&] { save_archive({}, path_); }, {path_.c_str(), "File exists"});
  EXPECT_EQ(read(), before);
}

TEST_F(ArchiveFile, AFullDiskIsReportedAndKeepsTheOldFile) {  // HD-30
  save_archive(example(), path_);
  const std::string before = read();
  std::filesystem::create_symlink("/dev/full", path_ + ".tmp");  // replaced, not followed
  save_archive(example(), path_);
  EXPECT_EQ(read(), before);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = 100, .rlim_max = old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  expect_error<IoError>([&] { save_archive(example(), path_); }, {"cannot write", path_.c_str(), "File too large"});
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(read(), before);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(ArchiveFile, AStaleTemporaryFileIsReplacedByTheNextSave) {  // HD-30
  std::ofstream(path_ + ".tmp") << "half of a checkpoint";
  save_archive(example(), path_);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
  EXPECT_EQ(load_archive(path_).texts, example().texts);
}

// 20 MB that are all `number`, which the text names too.
Archive uniform_archive(double number) {
  Archive archive;
  archive.texts["number"] = std::to_string(number);
  archive.tensors["a"] = full({1250, 1000}, number);
  archive.tensors["b"] = full({1250, 1000}, number, DType::float64).to(DType::float32);
  archive.tensors["c"] = full({1250, 1000}, number, DType::float64);
  return archive;
}

void expect_whole(const Archive& archive, const Archive& old, const Archive& fresh) {
  const Archive& like = archive.text("number") == old.text("number") ? old : fresh;
  EXPECT_EQ(archive.texts, like.texts);
  ASSERT_EQ(archive.tensors.size(), like.tensors.size());
  for (const auto& [name, tensor] : like.tensors) EXPECT_TRUE(identical(archive.tensor(name), tensor)) << name;
}

// A child that saves one archive and the other by turns until it is killed, after `delay`.
void save_until_killed(const Archive& a, const Archive& b, const std::string& path, std::chrono::microseconds delay) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (;;) {
      save_archive(a, path);
      save_archive(b, path);
    }
  }
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the child ended by itself";
}

TEST_F(ArchiveFile, AKilledSaveLeavesTheOldFileOrTheNew) {  // HD-30
  const Archive old = uniform_archive(1), fresh = uniform_archive(2);
  const auto start = std::chrono::steady_clock::now();
  save_archive(old, path_);
  const auto one_save = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  Rng rng(1);
  int interrupted = 0;
  for (int trial = 0; trial < 20; ++trial) {
    save_until_killed(fresh, old, path_, std::chrono::microseconds(rng.next_integer(0, 2 * one_save.count())));
    interrupted += std::filesystem::exists(path_ + ".tmp") ? 1 : 0;
    expect_whole(load_archive(path_), old, fresh);
  }
  EXPECT_GT(interrupted, 0) << "no kill came in the middle of a save";
  save_archive(fresh, path_);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
  expect_whole(load_archive(path_), fresh, fresh);
}

TEST_F(ArchiveFile, UnreadableSourcesGiveTheReason) {
  expect_error<IoError>([&] { load_archive(path_); }, {"[archive] cannot read", path_.c_str(), "No such file"});
  expect_error<IoError>([&] { load_archive(folder_.path("")); }, {"Is a directory"});
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_error<IoError>([&] { load_archive(path_); }, {path_.c_str(), "not a regular file"});
}

TEST(Archive, MissingEntriesAreNamed) {
  Archive archive = example();
  archive.source = "DIR/x";
  expect_error<FormatError>([&] { archive.tensor("v"); }, {"DIR/x", "tensor", "'v'"});
  expect_error<FormatError>([&] { archive.text("config"); }, {"DIR/x", "text", "'config'"});
}

TEST(Archive, AModuleOfAnotherShapeIsRefusedAndUnchanged) {  // HD-33
  Rng rng(1);
  const Linear saved(3, 4, {}, rng);
  Archive archive;
  save_module(saved, "m/", archive);
  archive.tensors["m/extra"] = ones({1});
  archive.tensors["n/other"] = ones({1});
  Linear target(3, 5, {.bias = false}, rng);
  const Tensor before = target.parameters()[0].variable.value().clone();
  expect_error<FormatError>(
      [&] { load_module(archive, "m/", target); },
      {"missing none", "unexpected bias extra;", "mismatched weight (file float32 [4, 3], here float32 [5, 3])"});
  expect_error<FormatError>([&] { load_module(archive, "k/", target); }, {"missing weight;", "unexpected none"});
  EXPECT_TRUE(identical(target.parameters()[0].variable.value(), before));
  Linear same(3, 4, {}, rng);
  expect_error<FormatError>([&] { load_module(archive, "m/", same); },
                            {"missing none; unexpected extra; mismatched none"});
}

TEST(Archive, LoadingCopiesIntoTheModulesOwnMemory) {
  Rng rng(1);
  const Linear saved(3, 4, {}, rng);
  Archive archive;
  save_module(saved, "", archive);
  Linear target(3, 4, {}, rng);
  const NamedParameter handle = target.parameters()[0];
  load_module(archive, "", target);
  EXPECT_TRUE(identical(handle.variable.value(), saved.parameters()[0].variable.value()));
  Tensor weight = handle.variable.value();
  weight.fill_(0);
  EXPECT_FALSE(identical(archive.tensor("weight"), weight)) << "an archive is a copy";
}

}  // namespace
}  // namespace carousel
