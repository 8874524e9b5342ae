// Files that somebody made to do harm, or that are something else: checksums are right wherever that lets them further.
#include "../examples/temporary_folder.h"
#include "expect_error.h"

#include <carousel/nn/archive_payload.h>
#include <carousel/nn/digest.h>
#include <carousel/nn/saved_model.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/storage.h>

#include <chrono>
#include <fstream>
#include <iterator>

namespace carousel {
namespace {

using test::expect_error;
using Clock = std::chrono::steady_clock;

constexpr uint64_t hostile_sizes[] = {33316061322250, 1ULL << 40, 1ULL << 63, ~0ULL};
constexpr int64_t mebibyte = 1 << 20;

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A payload by hand; lengths have `width` bytes.
struct Payload {
  std::string bytes = "\1";  // the byte order
  size_t width = 8;

  Payload& number(uint64_t value) {
    bytes += little_endian(value, width);
    return *this;
  }
  Payload& text(const std::string& text) {
    number(text.size());
    bytes += text;
    return *this;
  }
  Payload& tensor(const std::string& name, int type, const std::vector<uint64_t>& shape, const std::string& elements) {
    text(name);
    bytes += static_cast<char>(type);
    number(shape.size());
    for (const uint64_t size : shape) number(size);
    bytes += elements;
    return *this;
  }
};

constexpr int float32_code = static_cast<int>(DType::float32), boolean_code = static_cast<int>(DType::boolean);

std::string header_of(uint64_t length, const std::string& digest) {
  return "CAROUSEL" + little_endian(Archive::format_version, 4) + little_endian(length, 8) + digest;
}

std::string sha256(const std::string& bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.digest();
}

std::string file_of(const std::string& payload) { return header_of(payload.size(), sha256(payload)) + payload; }

CharacterModel make(const CharacterModelConfig& config, uint64_t seed) {
  Rng rng(seed);
  return CharacterModel(config, layer_kind(config.model).default_config(), rng);
}

// The most memory that this process had since `restart_peak`, in bytes. Under a sanitizer nothing is measured: it keeps
// what was freed, up to 256 MB, to see who uses it.
int64_t peak_memory() {
#if !defined(CAROUSEL_SANITIZED)
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
#endif
  return 0;
}
int64_t restart_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_memory();
}

class HostileArchive : public testing::Test {
 protected:
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  // Whatever `bytes` are, the error is one of a wrong format, names the file, and comes within a second.
  std::string error_of(const std::string& bytes) const {
    write(bytes);
    const auto start = Clock::now();
    std::string text = "nothing was thrown";
    try {
      load(path_);
    } catch (const FormatError& error) {
      text = error.what();
      EXPECT_NE(text.find(path_), std::string::npos) << text;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an error of another kind: " << error.what();
    }
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(1)) << text;
    return text;
  }
  void expect_refused(const std::string& bytes, const std::string& part) const {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find(part), std::string::npos) << "'" << part << "' in: " << error;
  }

  examples::TemporaryFolder folder_;
  std::string path_ = folder_.path("model.carousel");
};

Archive small_checkpoint() {
  Archive archive;
  save_model(make({.vocabulary_size = 2, .embedding_size = 2, .hidden_size = 2, .layers = 1}, 1), "ab", archive);
  return archive;
}

// What can follow the lie that a size is 2^63, at any place of the payload: an error or, where numbers of a tensor
// were overwritten, other weights.
TEST_F(HostileArchive, SizesBeyondTheFileAreRefusedInEveryPlaceAndTouchNoModel) {  // HD-31
  const std::string payload = encode_payload(small_checkpoint());
  const CharacterModelConfig other{.vocabulary_size = 3, .embedding_size = 2, .hidden_size = 2, .layers = 1};
  CharacterModel target = make(other, 2);
  const CharacterModel same = make(other, 2);
  const int64_t before = restart_peak();
  for (const uint64_t size : hostile_sizes) {
    for (size_t at = 1; at + 8 <= payload.size(); ++at) {
      std::string lying = payload;
      lying.replace(at, 8, little_endian(size, 8));
      error_of(file_of(lying));
      EXPECT_THROW(load_weights(load_archive(path_), target), FormatError) << "it has other sizes";
    }
  }
  EXPECT_LT(peak_memory() - before, 100 * mebibyte);
  for (size_t i = 0; i < target.parameters().size(); ++i) {
    EXPECT_TRUE(identical(target.parameters()[i].variable.value(), same.parameters()[i].variable.value()));
  }
}

TEST_F(HostileArchive, SizesWhoseProductOverflowsAreRefused) {  // HD-32 (e): it must not wrap to nothing
  const auto file_with = [](const std::vector<uint64_t>& shape) {
    return file_of(Payload().number(0).number(1).tensor("w", float32_code, shape, "").bytes);
  };
  const uint64_t large = 1ULL << 32;
  for (const std::vector<uint64_t>& shape :
       std::vector<std::vector<uint64_t>>{{large, large}, {large, large, large}, {1ULL << 62, 4}, {1ULL << 62}}) {
    expect_refused(file_with(shape), "a tensor larger than itself");
  }
  for (const std::vector<uint64_t>& shape :
       std::vector<std::vector<uint64_t>>{{0, large, large}, {large, 0, large}, {large, large, large, 0}}) {
    expect_refused(file_with(shape), "strides would be too large");
  }
  expect_refused(file_with({1ULL << 63}), "negative size");
  expect_refused(file_with(std::vector<uint64_t>(9, 1)), "too many axes");
}

TEST_F(HostileArchive, EmptyTensorsAreLegal) {  // HD-32 (h)
  write(file_of(Payload().number(0).number(1).tensor("w", float32_code, {0, 3}, "").bytes));
  EXPECT_EQ(load_archive(path_).tensor("w").shape(), (Shape{0, 3}));
}

TEST_F(HostileArchive, NamesThatStandTwiceAreRefused) {  // HD-32 (g)
  const std::string four = "abcd";
  expect_refused(file_of(Payload().number(2).text("a").text("1").text("a").text("2").number(0).bytes), "a text twice");
  expect_refused(file_of(Payload()
                             .number(0)
                             .number(2)
                             .tensor("w", float32_code, {1}, four)
                             .tensor("w", float32_code, {1}, four)
                             .bytes),
                 "a tensor twice");
}

TEST_F(HostileArchive, BytesThatMeanNothingAreRefused) {
  expect_refused(file_of(Payload().number(0).number(1).tensor("w", 99, {1}, "abcd").bytes), "a number type");
  expect_refused(file_of(Payload().number(0).number(1).tensor("w", boolean_code, {3}, std::string("\1\0\2", 3)).bytes),
                 "truth value");
  for (const char order : {'\2', '\x7F', '\xFF'}) {
    std::string payload = encode_payload(small_checkpoint());
    payload[0] = order;
    expect_refused(file_of(payload), "byte order");
  }
}

TEST_F(HostileArchive, LengthsOfAnotherMachineAreRefused) {  // HD-34: a word of 4 bytes
  Payload narrow;
  narrow.width = 4;
  narrow.number(1).text("model/dtype").text("float32").number(1).tensor("w", float32_code, {1, 2}, "abcdefgh");
  expect_refused(file_of(narrow.bytes), "does not fit");
  const std::string payload = encode_payload(small_checkpoint());
  for (size_t at = 1; at + 8 <= payload.size(); ++at) {
    EXPECT_NE(error_of(file_of(payload.substr(0, at) + payload.substr(at + 4))), "nothing was thrown") << at;
  }
}

TEST_F(HostileArchive, CutAtAnyByteIsRefused) {  // HD-31
  const std::string whole = file_of(encode_payload(small_checkpoint()));
  for (size_t length = 0; length < whole.size(); ++length) {
    expect_refused(whole.substr(0, length), length == 0 ? "not a Carousel archive" : "cut off");
  }
}

TEST_F(HostileArchive, FlippedBitsThatAChecksumHidesGiveOtherNumbersOrAnError) {
  const std::string payload = encode_payload(small_checkpoint());
  for (size_t at = 0; at < payload.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = payload;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      error_of(file_of(flipped));
    }
  }
}

TEST_F(HostileArchive, FilesOfOthersAreNamed) {  // HD-32: safetensors cannot be read, whole or damaged
  const std::string safetensors = R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  expect_refused(little_endian(safetensors.size(), 8) + safetensors + std::string(16, '\0'), "safetensors");
  expect_refused(std::string("\x1F\x8B\x08\0\0\0\0\0\0\3", 10) + std::string(60, 'x'), "gzip");
  expect_refused("\x89PNG\r\n\x1A\n" + std::string(60, '\0'), "PNG");
  expect_refused("PK\3\4" + std::string(26, '\0') + "archive/data.pkl" + std::string(60, '\0'), "PyTorch");
  expect_refused("To be, or not to be: that is the question.", "it begins with other bytes");
  expect_refused("carousel" + std::string(60, '\0'), "it begins with other bytes");
}

TEST_F(HostileArchive, ManySmallEntriesDoNotMultiplyMemory) {
  Payload tensors;
  tensors.number(0).number(1'000'000);
  Payload texts;
  texts.number(1'000'000);
  for (int i = 0; i < 1'000'000; ++i) {
    tensors.tensor(std::to_string(i), float32_code, {}, "abcd");
    texts.text(std::to_string(i)).text("");
  }
  for (const std::string& payload : {tensors.bytes, texts.number(0).bytes}) {
    write(file_of(payload));
    const int64_t before = restart_peak();
    expect_error<FormatError>([&] { load_archive(path_); }, {"[load]", path_.c_str(), "entries", "1000000"});
    EXPECT_LT(peak_memory() - before, 100 * mebibyte);
  }
  Archive archive;
  for (int i = 0; i < 65'536; ++i) {
    archive.texts[std::to_string(i)];
    archive.tensors[std::to_string(i)] = Tensor::scalar(1);
  }
  save_archive(archive, path_);
  archive = {};
  trim_storage_cache();
  const int64_t before = restart_peak();
  EXPECT_EQ(load_archive(path_).tensors.size(), 65'536U);
  EXPECT_LT(peak_memory() - before, 100 * mebibyte) << "as many as there may be";
  for (int i = 0; i < 65'537; ++i) archive.texts[std::to_string(i)];
  expect_error<ValueError>([&] { save_archive(archive, path_); }, {"entries", "65537"});
}

TEST_F(HostileArchive, LoadingTakesTheMemoryOfTheFileOnce) {  // HD-31: file size + 100 MB
  constexpr int64_t count = 48 * mebibyte;
  const std::string piece(static_cast<size_t>(mebibyte), '\0');
  std::string front = Payload().number(0).number(1).text("w").bytes;
  front += static_cast<char>(float32_code) + little_endian(1, 8) + little_endian(count, 8);
  Sha256 sum;
  sum.add(front);
  for (int64_t i = 0; i < 4 * count / mebibyte; ++i) sum.add(piece);
  {
    std::ofstream file(path_, std::ios::binary);
    file << header_of(front.size() + 4 * count, sum.digest()) << front;
    for (int64_t i = 0; i < 4 * count / mebibyte; ++i) file << piece;
  }
  const int64_t before = restart_peak();
  const Archive archive = load_archive(path_);
  EXPECT_EQ(archive.tensor("w").numel(), count);
  EXPECT_LT(peak_memory() - before, 4 * count + 100 * mebibyte);
}

// A model of another kind has other names; what is checked before anything is copied must find that too.
TEST_F(HostileArchive, AModelOfAnotherKindIsRefusedAndUnchanged) {  // HD-33
  const CharacterModelConfig lstm{
      .model = "lstm", .vocabulary_size = 65, .embedding_size = 64, .hidden_size = 64, .layers = 2};
  Archive archive;
  std::string symbols;
  for (char c = ' '; symbols.size() < 65; ++c) symbols += c;
  save_model(make(lstm, 1), symbols, archive);
  CharacterModelConfig wider = lstm, deeper = lstm, gru = lstm, more = lstm, fewer = lstm;
  wider.hidden_size = 128;
  deeper.layers = 3;
  gru.model = "gru";
  more.vocabulary_size = 66;
  fewer.vocabulary_size = 64;
  for (const CharacterModelConfig& other : {wider, deeper, gru, more, fewer}) {
    CharacterModel target = make(other, 2);
    const CharacterModel same = make(other, 2);
    expect_error<FormatError>([&] { load_weights(archive, target); },
                              {"missing", "unexpected", "mismatched", R"("model":"lstm")", "here is"});
    for (size_t i = 0; i < target.parameters().size(); ++i) {
      EXPECT_TRUE(identical(target.parameters()[i].variable.value(), same.parameters()[i].variable.value()));
    }
  }
}

TEST_F(HostileArchive, ConfigurationsThatAreNoneNameTheFile) {
  const Archive whole = small_checkpoint();
  const auto expect_config_refused = [&](const std::string& part, const std::string& json, const std::string& fault) {
    Archive archive = whole;
    archive.texts[part] = json;
    expect_refused(file_of(encode_payload(archive)), fault);
  };
  for (const char* const part : {"model/config", "model/layer"}) {
    expect_config_refused(part, "", "must be a JSON object");
    expect_config_refused(part, "\xFF\xFE", "must be a JSON object");
    expect_config_refused(part, std::string(500'000, '['), "must be a JSON object");
    expect_config_refused(part, R"({"hiden_size": 2})", "hiden_size");
    expect_config_refused(part, std::string(2 * mebibyte, ' '), "at most");
    expect_config_refused(part, "{\"" + std::string(1'000'000, 'x') + "\": 1}", "must be one of");
  }
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  expect_config_refused("model/config", R"({"layers": )" + deep + "}", "layers must be one value");
  expect_config_refused("model/config", deep, "must be a JSON object");
  expect_config_refused("model/config", R"({"layers": 1, "layers": 2})", "twice");
  expect_config_refused("model/config", R"({"vocabulary_size": 9223372036854775807})", "vocabulary_size");
}

}  // namespace
}  // namespace carousel
