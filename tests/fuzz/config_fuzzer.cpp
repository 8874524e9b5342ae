// A file for --config. Its own errors are UsageError.
#include "common/config.h"

#include "common/option_values.h"
#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  using namespace carousel::examples;
  return fuzz::expect_refusal_or_success([&] {
    const Config config("fuzz.json", fuzz::bytes(data, size));
    int64_t whole = 1;
    double number = 0.5;
    bool flag = false;
    std::string text;
    const Field fields[] = {{.name = "whole", .target = &whole, .help = "", .minimum = 1, .maximum = 9},
                            {.name = "number", .target = &number, .help = ""},
                            {.name = "flag", .target = &flag, .help = ""},
                            {.name = "text", .target = &text, .help = "", .choices = {"", "a", "b"}}};
    for (const Config::Entry& entry : config.entries()) {
      for (const Field& field : fields) {
        fuzz::expect_refusal_or_success([&] { set_from_config(config, entry, field); });
      }
    }
    if (whole < 1 || whole > 9) __builtin_trap();
  });
}
