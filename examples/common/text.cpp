#include "common/text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/numbers.h"

namespace carousel::examples {

namespace {

// Length of the UTF-8 sequence at the start of `text` (not empty), and its code point; length 0 when it is not one.
struct Decoded {
  size_t length;
  char32_t symbol;
};
Decoded decode_one(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {1, byte(0)};
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return {0, 0};
  char32_t symbol = byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    symbol = symbol << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = symbol < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  const bool surrogate = symbol >= 0xD800 && symbol <= 0xDFFF;
  return {overlong || surrogate || symbol > 0x10FFFF ? 0 : length, symbol};
}

std::string read_bytes(const std::string& path) {
  // On Linux a folder opens for reading and fails only later, so it is asked about first.
  check<IoError>(std::filesystem::exists(path), "--text", "no such file: got {}", path);
  check<IoError>(!std::filesystem::is_directory(path), "--text", "must be a file, but this is a folder: got {}", path);
  check<IoError>(std::filesystem::is_regular_file(path), "--text",
                 "must be a regular file, which ends somewhere: got {}", path);
  std::ifstream file(path, std::ios::binary);
  check<IoError>(file.is_open(), "--text", "cannot open {}: {}", path, std::strerror(errno));
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  check<IoError>(!file.bad(), "--text", "cannot read {}: {}", path, std::strerror(errno));
  return bytes;
}

int64_t remove_carriage_returns(std::string& text) {
  size_t kept = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    text[kept++] = text[i];
  }
  const size_t removed = text.size() - kept;
  text.resize(kept);
  return static_cast<int64_t>(removed);
}

}  // namespace

TextFile read_text(const std::string& path) {
  TextFile file{.text = read_bytes(path)};
  decode_utf8(file.text, path);
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (file.text.starts_with(byte_order_mark)) {
    file.text.erase(0, byte_order_mark.size());
    file.notices.push_back(fmt::format("{}: dropped the byte-order mark", path));
  }
  if (const int64_t count = remove_carriage_returns(file.text)) {
    file.notices.push_back(fmt::format("{}: changed {} line ends from CR LF to LF", path, count));
  }
  check<FormatError>(!file.text.empty(), "--text", "the file is empty: got {}", path);
  return file;
}

std::u32string decode_utf8(std::string_view text, std::string_view owner) {
  std::u32string symbols;
  symbols.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Decoded next = decode_one(text.substr(at));
    check<FormatError>(next.length > 0, owner, "must be UTF-8: got byte 0x{:02X} at byte {}",
                       static_cast<unsigned char>(text[at]), at);
    symbols += next.symbol;
    at += next.length;
  }
  return symbols;
}

std::string encode_utf8(char32_t symbol) {
  const auto tail = [symbol](int shift) { return static_cast<char>(0x80 | (symbol >> shift & 0x3F)); };
  if (symbol < 0x80) return {static_cast<char>(symbol)};
  if (symbol < 0x800) return {static_cast<char>(0xC0 | symbol >> 6), tail(0)};
  if (symbol < 0x10000) return {static_cast<char>(0xE0 | symbol >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | symbol >> 18), tail(12), tail(6), tail(0)};
}

Vocabulary::Vocabulary(std::string_view text) : symbols_(decode_utf8(text, "vocabulary")) {
  std::sort(symbols_.begin(), symbols_.end());
  symbols_.erase(std::unique(symbols_.begin(), symbols_.end()), symbols_.end());
}

Vocabulary Vocabulary::from_symbols(std::string_view symbols) {
  Vocabulary vocabulary(symbols);
  check<FormatError>(vocabulary.symbols() == symbols, "vocabulary",
                     "symbols must be distinct and in order: got '{:.60}'", symbols);
  return vocabulary;
}

std::string Vocabulary::symbols() const {
  std::string text;
  for (const char32_t symbol : symbols_) text += encode_utf8(symbol);
  return text;
}

Tensor Vocabulary::encode(std::string_view text) const {
  const std::u32string symbols = decode_utf8(text, "encode");
  Tensor tokens(Shape{static_cast<int64_t>(symbols.size())}, DType::int64);
  int64_t* out = tokens.mutable_data<int64_t>();
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto found = std::lower_bound(symbols_.begin(), symbols_.end(), symbols[i]);
    check<ValueError>(found != symbols_.end() && *found == symbols[i], "encode",
                      "symbol must be in the vocabulary: got U+{:04X} '{}' at position {}",
                      static_cast<uint32_t>(symbols[i]), encode_utf8(symbols[i]), i);
    out[i] = found - symbols_.begin();
  }
  return tokens;
}

std::string Vocabulary::decode(std::span<const int64_t> tokens) const {
  std::string text;
  for (const int64_t token : tokens) {
    check<IndexError>(token >= 0 && token < size(), "decode", "token must be in [0, {}): got {}", size(), token);
    text += encode_utf8(symbols_[static_cast<size_t>(token)]);
  }
  return text;
}

SplitRule parse_split(const std::string& text) {
  if (text == "nanogpt") return {0.9, 0.1, 0};
  if (text == "char-rnn") return {0.95, 0.05, 0};
  if (text == "torch-rnn") return {0.8, 0.1, 0.1};
  const size_t comma = text.find(',');
  const auto train = parse_number(text.substr(0, comma));
  const auto validation =
      comma == std::string::npos ? std::optional<double>(1 - train.value_or(0)) : parse_number(text.substr(comma + 1));
  const bool valid = train && validation && *train >= 0 && *validation >= 0 && *train + *validation <= 1 + 1e-12;
  check<ValueError>(valid, "--split", "must be nanogpt, char-rnn, torch-rnn, or shares like 0.9 or 0.8,0.1: got \"{}\"",
                    text);
  const double rest = 1 - *train - *validation;
  return {*train, *validation, rest > 1e-9 ? rest : 0};
}

Split split_sizes(const SplitRule& rule, int64_t symbols) {
  const auto part = [symbols](double share) {
    // The shares are decimal fractions: 1 - 0.8 - 0.1 is a little less than 0.1.
    return static_cast<int64_t>(std::floor(static_cast<double>(symbols) * share * (1 + 1e-12)));
  };
  if (rule.test == 0) {
    const int64_t train = part(rule.train);
    return {train, symbols - train, 0};
  }
  const int64_t validation = part(rule.validation);
  const int64_t test = part(rule.test);
  return {symbols - validation - test, validation, test};
}

}  // namespace carousel::examples
