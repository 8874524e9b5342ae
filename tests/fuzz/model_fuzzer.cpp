// The model and the training state of an archive that can be read as such.
#include <carousel/nn/archive_payload.h>
#include <carousel/nn/saved_model.h>
#include <carousel/optim/checkpoint.h>

#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  return fuzz::expect_refusal_or_success([&] {
    const Archive archive = decode_payload(fuzz::bytes(data, size), "fuzz");
    fuzz::expect_refusal_or_success([&] { training_state(archive); });
    make_model(archive);
  });
}
