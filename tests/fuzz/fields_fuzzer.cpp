// Options as JSON: of checkpoints and of --config.
#include <carousel/nn/character_model.h>
#include <carousel/nn/registry.h>

#include "fuzzer.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carousel;
  return fuzz::expect_refusal_or_success([&] {
    CharacterModelConfig config;
    const std::string json(fuzz::bytes(data, size));
    fields_from_json("fuzz", json, fields(config));
    const LayerConfig layer = layer_kind(config.model).default_config();
    const std::string written = fields_to_json(fields(config));
    fields_from_json("again", written, fields(config));
    if (fields_to_json(fields(config)) != written) __builtin_trap();
  });
}
