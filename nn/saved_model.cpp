#include <carousel/nn/saved_model.h>

#include <filesystem>

namespace carousel {
namespace {

constexpr const char* weights_prefix = "model/";

DType parse_dtype(const Archive& archive) {
  const std::string& name = archive.text("model/dtype");
  for (const DType dtype : {DType::float32, DType::float64}) {
    if (name == to_string(dtype)) {
      return dtype;
    }
  }
  throw FormatError(fmt::format("[load] {}: model/dtype must be float32 or float64: got '{}'", archive.source, name));
}

std::string describe(const CharacterModel& model) {
  CharacterModelConfig config = model.config();
  return fields_to_json(fields(config)) + " " + fields_to_json(model.layer_config().field_list());
}

}  // namespace

std::string checkpoint_path(const std::string& directory_or_file) {
  std::error_code unknown;  // a path that cannot be looked at is for the reader to complain about
  const std::filesystem::path path(directory_or_file);
  return std::filesystem::is_directory(path, unknown) ? (path / "checkpoint.carousel").string() : directory_or_file;
}

void save_model(const CharacterModel& model, const std::string& vocabulary, Archive& archive) {
  CharacterModelConfig config = model.config();
  archive.texts["model/config"] = fields_to_json(fields(config));
  archive.texts["model/layer"] = fields_to_json(model.layer_config().field_list());
  archive.texts["model/dtype"] = to_string(model.dtype());
  archive.texts["vocabulary"] = vocabulary;
  save_module(model, weights_prefix, archive);
}

SavedModel make_model(const Archive& archive) {
  try {
    CharacterModelConfig config;
    fields_from_json("model", archive.text("model/config"), fields(config));
    const LayerConfig layer = layer_kind(config.model).default_config();
    fields_from_json(config.model, archive.text("model/layer"), layer.field_list());
    Rng unused(0);  // every weight is about to be replaced
    auto model = std::make_unique<CharacterModel>(config, layer, unused, parse_dtype(archive));
    load_weights(archive, *model);
    return {std::move(model), archive.text("vocabulary")};
  } catch (const ValueError& error) {
    throw FormatError(fmt::format("[load] {}: {}", archive.source, error.what()));
  }
}

void load_weights(const Archive& archive, CharacterModel& model) {
  try {
    load_module(archive, weights_prefix, model);
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}; the file holds {} {}, here is {}", error.what(), archive.text("model/config"),
                                  archive.text("model/layer"), describe(model)));
  }
}

SavedModel load(const std::string& directory_or_file) {
  return make_model(load_archive(checkpoint_path(directory_or_file)));
}

}  // namespace carousel
