// The symbols of a checkpoint's tokenizer.
#include "common/text.h"

#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  return fuzz::expect_refusal_or_success([&] {
    const std::string_view symbols = fuzz::bytes(data, size);
    const auto vocabulary = examples::Vocabulary::from_symbols(symbols);
    if (vocabulary.symbols() != symbols) __builtin_trap();
  });
}
