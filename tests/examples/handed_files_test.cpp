// Checkpoints that are none, tried against every command that reads one: trials of the handed cases.
#include <carousel/nn/archive.h>
#include <carousel/nn/digest.h>

#include <sys/resource.h>

#include <chrono>

#include "char_lm_fixture.h"

namespace carousel::examples {
namespace {

class HandedFile : public CharLm {
 protected:
  void SetUp() override {
    ASSERT_EQ(train(text_, {"--stop-after", "5"}).exit_code, 0);
    whole_ = bytes_of(checkpoint());
  }

  // The commands refuse the file as it is, naming it and what is wrong, and change nothing.
  void expect_refused(const std::vector<Arguments>& commands, const std::string& part) {
    const auto before = contents();
    for (const Arguments& command : commands) {
      const auto begin = std::chrono::steady_clock::now();
      const ProgramResult result = run(command);
      const auto passed = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(passed, std::chrono::seconds(10)) << "a second is the rule; machines can be busy";
      EXPECT_EQ(result.exit_code, 1) << command.front() << ": " << result.err;
      const std::string error = error_of(result);
      EXPECT_NE(error.find(checkpoint()), std::string::npos) << command.front() << ": " << error;
      EXPECT_NE(error.find(part), std::string::npos) << command.front() << ": " << error;
    }
    EXPECT_TRUE(contents() == before);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("second")));
  }
  void expect_refused(const std::string& bytes, const std::string& part) {
    write("run/checkpoint.carousel", bytes);
    expect_refused(readers_, part);
  }
  // An archive whose lengths and checksum are right.
  void save(const std::function<void(Archive&)>& change) {
    write("run/checkpoint.carousel", whole_);
    Archive archive = load_archive(checkpoint());
    change(archive);
    save_archive(archive, checkpoint());
  }

  std::string whole_;
  std::vector<Arguments> readers_ = {{"info", out_},
                                     {"sample", out_},
                                     {"eval", checkpoint()},
                                     {"train", "--resume", out_},
                                     {"train", "--init-from", out_, "--out", folder_.path("second")},
                                     {"replay", checkpoint()}};
};

// A file with another payload: its length and its checksum are right.
std::string sealed(const std::string& file, const std::string& payload) {
  std::string header = file.substr(0, 12);
  for (int i = 0; i < 8; ++i) header.push_back(static_cast<char>(payload.size() >> (8 * i)));
  Sha256 sum;
  sum.add(payload);
  return header + sum.digest() + payload;
}

std::string with_number(std::string bytes, size_t at, uint64_t number) {
  for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

constexpr size_t version_at = 8, length_at = 12, header_bytes = 52;  // of an archive

int64_t peak_of_children() {  // bytes
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return int64_t{1024} * usage.ru_maxrss;
}

TEST_F(HandedFile, SizesBeyondTheFileAreRefusedWithoutMemory) {  // HD-31
  const std::string payload = whole_.substr(header_bytes);
  [[maybe_unused]] const int64_t most =
      std::max(peak_of_children(), static_cast<int64_t>(whole_.size()) + 100 * 1024 * 1024);
  for (const uint64_t number : {uint64_t{33316061322250}, uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{0}}) {
    expect_refused(with_number(whole_, length_at, number), "is cut off");
    expect_refused(sealed(whole_, with_number(payload, 1, number)), "does not fit");  // behind the byte order
  }
#if !defined(CAROUSEL_SANITIZED)  // a sanitizer's own memory would be counted
  EXPECT_LE(peak_of_children(), most);
#endif
}

TEST_F(HandedFile, CutOrLongerIsRefused) {  // HD-31
  expect_refused("", "is not a Carousel archive");
  for (size_t sixteenth = 1; sixteenth < 16; sixteenth += 2) {
    expect_refused(whole_.substr(0, whole_.size() * sixteenth / 16), "is cut off");
  }
  expect_refused(whole_ + "12345678", "is too long");
  std::string flipped = whole_;
  flipped[whole_.size() / 2] ^= 1;
  expect_refused(flipped, "is damaged");
}

TEST_F(HandedFile, OfAnotherFormatIsRefused) {  // HD-32: formats that are not read; HD-34
  for (const int version : {0, 2, 999}) {
    std::string other = whole_;
    other[version_at] = static_cast<char>(version & 0xFF);
    other[version_at + 1] = static_cast<char>(version >> 8);
    expect_refused(other, "got " + std::to_string(version) + ", understood is 1");
  }
  const std::string safetensors = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  for (const auto& [foreign, guess] :
       {std::pair("carousel" + whole_.substr(version_at), "it begins with other bytes"),
        {std::string("\x1F\x8B\x08"), "it is compressed with gzip"},
        {std::string("\x36\0\0\0\0\0\0\0", 8) + safetensors + "abcd", "it looks like a safetensors file"}}) {
    expect_refused(foreign, std::string("is not a Carousel archive: ") + guess);
  }
  std::string narrow = whole_, narrow_counts = whole_.substr(header_bytes);
  expect_refused(narrow.erase(length_at + 4, 4), "after the header, which promises");  // lengths of 4 bytes
  expect_refused(sealed(whole_, narrow_counts.erase(5, 4)), "does not fit");
}

TEST_F(HandedFile, OfAnEarlierReleaseWithoutAFieldIsRead) {  // HD-34
  const std::string digest = info()["state_sha256"];
  save([](Archive& archive) { archive.texts.erase("training/progress"); });
  expect_refused({{"info", out_}, {"train", "--resume", out_}}, "has no text of this name: got 'training/progress'");
  save([](Archive& archive) {
    for (const auto& [text, field] : {std::pair("training/progress", "last_lr"),
                                      {"training/options", "on_nonfinite"},
                                      {"training/options", "momentum"}}) {
      json object = json::parse(archive.texts.at(text));
      ASSERT_EQ(object.erase(field), 1U) << field;
      archive.texts[text] = object.dump();
    }
  });
  EXPECT_EQ(info()["state_sha256"], digest) << "what is missing has its default";
  EXPECT_EQ(run({"train", "--resume", out_}).exit_code, 0);
}

TEST_F(HandedFile, WithConfigurationsThatFitNothingIsRefused) {
  const std::vector<Arguments> weights = {{"info", out_}, {"sample", out_}, {"eval", out_}};
  std::vector<Arguments> all = weights;
  all.insert(all.end(), {{"train", "--resume", out_}, {"train", "--init-from", out_, "--out", folder_.path("second")}});
  const auto expect = [this](const char* text, const std::string& lie, const std::vector<Arguments>& commands,
                             const char* part) {
    save([&](Archive& archive) { archive.texts[text] = lie; });
    expect_refused(commands, part);
  };
  expect("model/config", "{\"hidden_size\": [1]}", all, "hidden_size must be one value: got a list or an object");
  expect("model/config", "\n\x1b[31m{", all, "must be a JSON object: got \\n\\x1b[31m{");
  expect("model/config", R"({"vocabulary_size": 13, "hidden_size": 65536})", weights, "mismatched");
  expect("model/layer", "{\"nosuch\": 1}", all, "'nosuch'");
  expect("model/dtype", "float\n", weights, "model/dtype must be float32 or float64: got 'float\\n'");
  save([](Archive& archive) { archive.texts["training/progress"] = R"({"tokens": -1})"; });
  expect_refused({{"info", out_}, {"train", "--resume", out_}}, "tokens must be in [0, inf]: got -1");
  save([](Archive& archive) { archive.texts["training/options"] = R"({"batch_size": "x"})"; });
  expect_refused({{"info", out_}, {"eval", out_}, {"train", "--resume", out_}}, "batch_size must be a whole number");
}

TEST_F(HandedFile, WithAnotherCarriedStateIsRefusedBeforeAnythingIsWritten) {
  save([](Archive& archive) {
    for (auto& [name, tensor] : archive.tensors) {
      if (name.starts_with("carried/value/")) tensor = Tensor({2, 3}, DType::float32);
    }
  });
  expect_refused({{"train", "--resume", out_}}, "mismatched");
  save([](Archive& archive) {
    std::erase_if(archive.tensors, [](const auto& named) { return named.first.starts_with("carried/"); });
  });
  expect_refused({{"train", "--resume", out_}}, "missing");
}

TEST_F(HandedFile, OfAnotherArchitectureIsRefusedNamingTheOption) {  // HD-33
  std::string text;
  for (char symbol = '0'; symbol < '0' + 65; ++symbol) text += symbol;
  const std::string symbols65 = write("65.txt", repeated(text, 20)),
                    symbols66 = write("66.txt", repeated(text + "!", 20)),
                    symbols64 = write("64.txt", repeated(text.substr(1), 20));
  const Arguments sizes = {"--model", "lstm", "--layers", "2", "--rnn_size", "64"};
  Arguments first = {"train", "--text", symbols65, "--out", out_, "--overwrite", "--steps", "4", "--batch-size", "4"};
  first.insert(first.end(), sizes.begin(), sizes.end());
  ASSERT_EQ(run(first).exit_code, 0);
  EXPECT_EQ(info()["vocabulary_size"], 65);
  const auto before = contents();
  const std::string second = folder_.path("second");
  for (const auto& [option, other, own] :
       {std::tuple("--rnn_size", "128", "64"), {"--layers", "3", "2"}, {"--model", "gru", "lstm"}}) {
    const std::string start = std::string("char_lm: [") + option + "] is " + own + " in " + out_;
    ProgramResult result = run({"train", "--init-from", out_, "--out", second, option, other});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(error_of(result), start + ": sizes come from the checkpoint\n");
    result = run({"train", "--resume", out_, option, other});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(error_of(result), start + ", and a resumed run keeps it: got " + other + "\n");
  }
  ProgramResult result = run({"train", "--init-from", out_, "--out", second, "--text", symbols66});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(error_of(result).find("must be in the vocabulary: got U+0021 '!' at position 65"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(second));
  EXPECT_TRUE(contents() == before);
  result = run({"train", "--init-from", out_, "--out", second, "--text", symbols64});
  EXPECT_EQ(result.exit_code, 0) << "a text need not have every symbol that the model knows: " << result.err;
  out_ = second;
  EXPECT_EQ(info()["vocabulary_size"], 65);
}

}  // namespace
}  // namespace carousel::examples
