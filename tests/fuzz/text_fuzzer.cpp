// A text from bytes to tokens and back.
#include "common/text.h"

#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  return fuzz::expect_refusal_or_success([&] {
    const std::string_view text = fuzz::bytes(data, size);
    const examples::Vocabulary vocabulary(text);
    const std::vector<int64_t> tokens = vocabulary.encode(text).to_vector<int64_t>();
    if (vocabulary.decode(tokens) != text) __builtin_trap();
  });
}
