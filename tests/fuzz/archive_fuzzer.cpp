// The inside of an archive, which a checksum guards against accidents, but not against who computes it anew.
#include <carousel/nn/archive_payload.h>

#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  return fuzz::expect_refusal_or_success([&] {
    const Archive archive = decode_payload(fuzz::bytes(data, size), "fuzz");
    for (const auto& [name, tensor] : archive.tensors) {
      if (tensor.dtype() == DType::boolean) tensor.to_vector<bool>();  // the sanitizer knows what is no bool
    }
    if (decode_payload(encode_payload(archive), "again").tensors.size() != archive.tensors.size()) __builtin_trap();
  });
}
