#include "char_lm/prompt.h"

#include <carousel/tensor/error.h>

#include <iconv.h>

#include <clocale>
#include <cstdint>
#include <cwctype>

namespace carousel::examples {

namespace {

bool is_known(std::u32string_view symbols, const std::u32string& known) {
  return !symbols.empty() && symbols.find_first_not_of(known) == std::u32string_view::npos;
}

// ASCII that looks like the symbol; "?" and no symbol at all where there is none.
std::u32string transliterated(char32_t symbol) {
  const iconv_t converter = iconv_open("ASCII//TRANSLIT", "UTF-8");
  if (reinterpret_cast<intptr_t>(converter) == -1) return {};
  std::string from = encode_utf8(symbol), to(16, '\0');
  char *in = from.data(), *out = to.data();
  size_t in_left = from.size(), out_left = to.size();
  const size_t failed = iconv(converter, &in, &in_left, &out, &out_left);
  iconv_close(converter);
  to.resize(to.size() - out_left);
  return failed == static_cast<size_t>(-1) || to == "?" ? std::u32string() : decode_utf8(to, "transliteration");
}

std::u32string nearest(char32_t symbol, const std::u32string& known) {
  const auto wide = static_cast<wint_t>(symbol);
  for (const wint_t other : {towlower(wide), towupper(wide)}) {
    std::u32string cased(1, static_cast<char32_t>(other));
    if (is_known(cased, known)) return cased;
  }
  std::u32string ascii = transliterated(symbol);
  if (is_known(ascii, known)) return ascii;
  for (char32_t& letter : ascii) letter = static_cast<char32_t>(towlower(static_cast<wint_t>(letter)));
  return is_known(ascii, known) ? ascii : std::u32string();
}

std::string encode_all(const std::u32string& symbols) {
  std::string text;
  for (const char32_t symbol : symbols) text += encode_utf8(symbol);
  return text;
}

}  // namespace

std::string prompt_text(const std::string& prompt, const std::string& file) {
  constexpr std::string_view nanogpt = "FILE:";
  check<ValueError>(prompt.empty() || file.empty(), "--prompt-file", "must not be given beside --prompt: got {} and {}",
                    file, prompt);
  if (!file.empty()) return read_text(file).text;
  return prompt.starts_with(nanogpt) ? read_text(prompt.substr(nanogpt.size())).text : prompt;
}

Prompt known_prompt(const std::string& text, const Vocabulary& vocabulary, const std::string& policy) {
  if (policy == "error") return {.text = text};
  std::setlocale(LC_CTYPE, "C.UTF-8");  // without it, neither cases nor transliteration beyond ASCII
  const std::u32string known = decode_utf8(vocabulary.symbols(), "vocabulary");
  Prompt prompt;
  const std::u32string symbols = decode_utf8(text, "--prompt");
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (is_known({&symbols[i], 1}, known)) {
      prompt.text += encode_utf8(symbols[i]);
      continue;
    }
    const std::u32string instead = policy == "nearest" ? nearest(symbols[i], known) : std::u32string();
    prompt.text += encode_all(instead);
    prompt.notices.push_back(fmt::format(
        "the model does not know U+{:04X} '{}' at position {}: {}", static_cast<uint32_t>(symbols[i]),
        encode_utf8(symbols[i]), i, instead.empty() ? "left out" : fmt::format("'{}' instead", encode_all(instead))));
  }
  return prompt;
}

}  // namespace carousel::examples
