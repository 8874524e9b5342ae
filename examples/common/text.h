#pragma once

#include <carousel/tensor/tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carousel::examples {

struct TextFile {
  std::string text;                       ///< valid UTF-8
  std::vector<std::string> notices = {};  ///< what was changed on the way in, a sentence each
};

/// Reads a UTF-8 text. A byte-order mark at the beginning is dropped and CR LF becomes LF, each with a notice; nothing
/// else changes (a lone CR is a symbol like any other). Throws IoError when the path is missing, is a folder or cannot
/// be read, FormatError when the file is empty or is not UTF-8 (naming the byte).
TextFile read_text(const std::string& path);

/// The code points of a text. Throws FormatError naming the byte position of the first sequence that is not UTF-8
/// (truncated, overlong, a surrogate, beyond U+10FFFF).
std::u32string decode_utf8(std::string_view text, std::string_view owner);
std::string encode_utf8(char32_t symbol);

/// The distinct code points of a text, sorted; a symbol's index is its token.
class Vocabulary {
 public:
  /// Of the symbols in `text`, in any order and number. Throws FormatError when it is not UTF-8.
  explicit Vocabulary(std::string_view text);
  /// From what `symbols` gave. Throws FormatError unless they are distinct and in order: another order would give
  /// tokens another meaning.
  static Vocabulary from_symbols(std::string_view symbols);

  int64_t size() const { return static_cast<int64_t>(symbols_.size()); }
  std::string symbols() const;  ///< all of them as one UTF-8 text, from which an equal vocabulary can be made

  /// Tokens of a text, int64 [symbols]. Throws ValueError naming the first symbol that is not in the vocabulary
  /// (U+005A) and its position, counted in symbols from 0; FormatError when `text` is not UTF-8.
  Tensor encode(std::string_view text) const;
  /// The text of tokens. Throws IndexError for a token outside [0, size()).
  std::string decode(std::span<const int64_t> tokens) const;

 private:
  std::u32string symbols_;
};

/// Which share of a text is for what.
struct SplitRule {
  double train;
  double validation;
  double test;
};
/// Half-open ranges of symbols, contiguous and in this order.
struct Split {
  int64_t train;       ///< [0, train)
  int64_t validation;  ///< [train, train + validation)
  int64_t test;        ///< the rest
};

/// "nanogpt" (90/10), "char-rnn" (95/5: our tail is one piece, char-rnn's the last chunks of each stream), "torch-rnn"
/// (80/10/10), or shares: "0.9" (train, the rest is validation), "0.8,0.1" (the rest is test); "0" leaves all for
/// validation. Throws ValueError.
SplitRule parse_split(const std::string& text);
/// The sizes as those programs round them: without a test part, train is rounded down; with one, the two held-out
/// parts are.
Split split_sizes(const SplitRule& rule, int64_t symbols);

}  // namespace carousel::examples
