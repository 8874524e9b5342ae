#pragma once

#include <carousel/tensor/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

/// What libFuzzer calls with each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace carousel::fuzz {

inline std::string_view bytes(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

/// Runs `read`, which may refuse its input with an error of ours; any other exception ends the process.
template <class Read>
int expect_refusal_or_success(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace carousel::fuzz
