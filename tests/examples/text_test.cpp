#include "common/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "temporary_folder.h"

namespace carousel::examples {
namespace {

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class TextFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(TextFileTest, ReadsWhatIsThere) {
  const TextFile file = read_text(write("plain.txt", "naïve – 日本\n"));
  EXPECT_EQ(file.text, "naïve – 日本\n");
  EXPECT_TRUE(file.notices.empty());
}

TEST_F(TextFileTest, TellsAMissingPathFromAFolder) {
  const std::string missing = folder_.path("missing.txt");
  EXPECT_EQ(error_of([&] { read_text(missing); }), "[--text] no such file: got " + missing);
  const std::string folder = folder_.path("");
  EXPECT_EQ(error_of([&] { read_text(folder); }), "[--text] must be a file, but this is a folder: got " + folder);
}

TEST_F(TextFileTest, RefusesAnEmptyFileAlsoWhenItHoldsOnlyAMark) {
  for (const std::string bytes : {"", "\xEF\xBB\xBF"}) {
    const std::string path = write("empty.txt", bytes);
    EXPECT_EQ(error_of([&] { read_text(path); }), "[--text] the file is empty: got " + path);
  }
}

TEST_F(TextFileTest, NamesTheByteThatIsNotUtf8) {
  const std::string path = write("latin1.txt", "caf\xE9 noir");
  EXPECT_EQ(error_of([&] { read_text(path); }), "[" + path + "] must be UTF-8: got byte 0xE9 at byte 3");
}

TEST_F(TextFileTest, DropsTheMarkAndCarriageReturnsWithNotices) {
  std::string bytes = "\xEF\xBB\xBF";
  for (int i = 0; i < 1000; ++i) bytes += "a\r\nb\r\n";
  const std::string path = write("windows.txt", bytes);
  const TextFile file = read_text(path);
  EXPECT_EQ(file.text.substr(0, 8), "a\nb\na\nb\n");
  EXPECT_EQ(file.text.size(), 4000u);
  EXPECT_EQ(file.notices, (std::vector<std::string>{path + ": dropped the byte-order mark",
                                                    path + ": changed 2000 line ends from CR LF to LF"}));
  EXPECT_EQ(Vocabulary(file.text).size(), 3);
}

TEST_F(TextFileTest, KeepsALoneCarriageReturnAndNeedsNoLastNewline) {
  EXPECT_EQ(read_text(write("mac.txt", "a\rb\r")).text, "a\rb\r");
  EXPECT_EQ(read_text(write("open.txt", "a\nb")).text, "a\nb");
}

TEST(Utf8, RoundTripsEveryLength) {
  const std::u32string symbols(U"\0\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF", 10);
  std::string text;
  for (const char32_t symbol : symbols) text += encode_utf8(symbol);
  EXPECT_EQ(text.size(), 1u + 1 + 2 + 2 + 3 + 3 + 3 + 3 + 4 + 4);
  EXPECT_TRUE(decode_utf8(text, "test") == symbols);
}

TEST(Utf8, RefusesWhatIsNotUtf8) {
  struct Case {
    std::string bytes;
    std::string byte;
    int position;
  };
  const Case cases[] = {{"a\x80", "0x80", 1},
                        {"\xC0\xAF", "0xC0", 0},
                        {"\xC1\xBF", "0xC1", 0},
                        {"ab\xE0\x80\xAF", "0xE0", 2},
                        {"\xED\xA0\x80", "0xED", 0},
                        {"\xF0\x80\x80\x80", "0xF0", 0},
                        {"\xF4\x90\x80\x80", "0xF4", 0},
                        {"\xF5\x80\x80\x80", "0xF5", 0},
                        {"\xE2\x82", "0xE2", 0},
                        {"\xC3(", "0xC3", 0},
                        {"\xFF", "0xFF", 0}};
  for (const Case& item : cases) {
    EXPECT_EQ(error_of([&] { decode_utf8(item.bytes, "test"); }),
              "[test] must be UTF-8: got byte " + item.byte + " at byte " + std::to_string(item.position));
  }
}

TEST(Vocabulary, HoldsSortedCodePoints) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "naïve café – 日本\n";
  const Vocabulary vocabulary(text);
  EXPECT_EQ(vocabulary.size(), 13);  // code points; as bytes there would be 19
  EXPECT_EQ(vocabulary.symbols(), "\n acefnvéï–日本");
  EXPECT_EQ(Vocabulary(vocabulary.symbols()).symbols(), vocabulary.symbols());
}

TEST(Vocabulary, TakesStoredSymbolsInTheirOrderOnly) {
  EXPECT_EQ(Vocabulary::from_symbols("\nabé").symbols(), "\nabé");
  EXPECT_EQ(error_of([] { Vocabulary::from_symbols("ba"); }),
            "[vocabulary] symbols must be distinct and in order: got 'ba'");
  EXPECT_EQ(error_of([] { Vocabulary::from_symbols("aab"); }),
            "[vocabulary] symbols must be distinct and in order: got 'aab'");
}

TEST(Vocabulary, EncodesAndDecodes) {
  const Vocabulary vocabulary("café 日\r\n");
  const Tensor tokens = vocabulary.encode("日 é\r\n");
  EXPECT_EQ(tokens.to_vector<int64_t>(), (std::vector<int64_t>{7, 2, 6, 1, 0}));
  EXPECT_EQ(vocabulary.decode(tokens.to_vector<int64_t>()), "日 é\r\n");
  EXPECT_EQ(vocabulary.encode("").numel(), 0);
}

TEST(Vocabulary, NamesTheUnknownSymbolAndItsPosition) {
  const Vocabulary vocabulary("Helloworld!\n");
  EXPECT_EQ(error_of([&] { vocabulary.encode(" "); }),
            "[encode] symbol must be in the vocabulary: got U+0020 ' ' at position 0");
  EXPECT_EQ(error_of([&] { vocabulary.encode("Hello world"); }),
            "[encode] symbol must be in the vocabulary: got U+0020 ' ' at position 5");
  EXPECT_EQ(error_of([&] { vocabulary.encode("Zürich"); }),
            "[encode] symbol must be in the vocabulary: got U+005A 'Z' at position 0");
  EXPECT_EQ(error_of([&] { vocabulary.encode("loü"); }),
            "[encode] symbol must be in the vocabulary: got U+00FC 'ü' at position 2");
}

TEST(Vocabulary, RefusesTokensOutsideIt) {
  const Vocabulary vocabulary("abc");
  for (const int64_t token : {int64_t{-1}, int64_t{3}}) {
    EXPECT_EQ(error_of([&] { vocabulary.decode(std::vector<int64_t>{token}); }),
              "[decode] token must be in [0, 3): got " + std::to_string(token));
  }
}

TEST(Split, CutsTinyShakespeareLikeTheOthers) {
  const auto sizes = [](const std::string& rule) {
    const Split split = split_sizes(parse_split(rule), 1'115'394);
    return std::vector<int64_t>{split.train, split.validation, split.test};
  };
  EXPECT_EQ(sizes("nanogpt"), (std::vector<int64_t>{1'003'854, 111'540, 0}));
  EXPECT_EQ(sizes("torch-rnn"), (std::vector<int64_t>{892'316, 111'539, 111'539}));
  EXPECT_EQ(sizes("char-rnn"), (std::vector<int64_t>{1'059'624, 55'770, 0}));
  EXPECT_EQ(sizes("0.9"), sizes("nanogpt"));
  EXPECT_EQ(sizes("0.8,0.1"), sizes("torch-rnn"));
  EXPECT_EQ(sizes("0.9,0.1"), sizes("nanogpt"));
  EXPECT_EQ(sizes("0"), (std::vector<int64_t>{0, 1'115'394, 0}));
  EXPECT_EQ(sizes("1"), (std::vector<int64_t>{1'115'394, 0, 0}));
}

TEST(Split, LosesNoSymbol) {
  for (int64_t symbols = 0; symbols < 200; ++symbols) {
    for (const char* rule : {"nanogpt", "char-rnn", "torch-rnn", "0.5,0.25", "0.3"}) {
      const Split split = split_sizes(parse_split(rule), symbols);
      EXPECT_EQ(split.train + split.validation + split.test, symbols) << rule;
      EXPECT_GE(std::min({split.train, split.validation, split.test}), 0) << rule;
    }
  }
}

TEST(Split, RefusesOtherText) {
  for (const char* rule : {"", "nanogtp", "-0.5", "1.5", "0.9,0.2", "0.9,", "0.9,-0.1", "nan", "inf", "0.8,0.1,0.1"}) {
    EXPECT_EQ(error_of([&] { parse_split(rule); }),
              std::string("[--split] must be nanogpt, char-rnn, torch-rnn, or shares like 0.9 or 0.8,0.1: got \"") +
                  rule + "\"");
  }
}

}  // namespace
}  // namespace carousel::examples
