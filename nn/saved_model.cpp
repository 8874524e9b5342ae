#include <carousel/nn/saved_model.h>

#include <carousel/nn/init.h>

#include <algorithm>
#include <filesystem>

namespace carousel {
namespace {

constexpr const char* weights_prefix = "model/";

DType parse_dtype(const Archive& archive) {
  const std::string& name = archive.text("model/dtype");
  for (const DType dtype : {DType::float32, DType::float64}) {
    if (name == to_string(dtype)) return dtype;
  }
  throw FormatError(fmt::format("[load] {}: model/dtype must be float32 or float64: got '{}'", archive.source, name));
}

std::string describe(const CharacterModel& model) {
  CharacterModelConfig config = model.config();
  return fields_to_json(fields(config)) + " " + fields_to_json(model.layer_config().field_list());
}

int64_t code_points(const std::string& utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

// Throws FormatError unless the weights of `archive` have the shapes of `model`'s.
void check_weights(const Archive& archive, const CharacterModel& model) {
  try {
    check_tensors(archive, weights_prefix, named_tensors(model));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}; the file holds {} {}, here is {}", error.what(), archive.text("model/config"),
                                  archive.text("model/layer"), describe(model)));
  }
}

// The model that `archive` describes, with other weights.
std::unique_ptr<CharacterModel> make_described(const Archive& archive) {
  CharacterModelConfig config;
  load_fields(archive, "model/config", "model", fields(config));
  const LayerConfig layer = layer_kind(config.model).default_config();
  load_fields(archive, "model/layer", config.model, layer.field_list());
  Rng unused(0);
  return std::make_unique<CharacterModel>(config, layer, unused, parse_dtype(archive));
}

// A few bytes can describe a model larger than all memory: whether the file has the weights is seen first.
void check_description(const Archive& archive) {
  const init::ShapesOnly no_memory;
  const std::unique_ptr<CharacterModel> model = make_described(archive);
  check_weights(archive, *model);
  const int64_t symbols = code_points(archive.text("vocabulary"));
  check<FormatError>(symbols == model->config().vocabulary_size, "load",
                     "{}: vocabulary must have as many code points as the model has symbols: got {} and {}",
                     archive.source, symbols, model->config().vocabulary_size);
}

}  // namespace

std::string checkpoint_path(const std::string& directory_or_file) {
  std::error_code unknown;  // a path that cannot be looked at is for the reader to complain about
  const std::filesystem::path path(directory_or_file);
  return std::filesystem::is_directory(path, unknown) ? (path / "checkpoint.carousel").string() : directory_or_file;
}

void save_model(const CharacterModel& model, const std::string& vocabulary, Archive& archive) {
  CharacterModelConfig config = model.config();
  check<ValueError>(code_points(vocabulary) == config.vocabulary_size, "save_model",
                    "vocabulary must have as many code points as the model has symbols: got {} and {}",
                    code_points(vocabulary), config.vocabulary_size);
  archive.texts["model/config"] = fields_to_json(fields(config));
  archive.texts["model/layer"] = fields_to_json(model.layer_config().field_list());
  archive.texts["model/dtype"] = to_string(model.dtype());
  archive.texts["vocabulary"] = vocabulary;
  save_module(model, weights_prefix, archive);
}

SavedModel make_model(const Archive& archive) {
  try {
    check_description(archive);
    SavedModel saved{make_described(archive), archive.text("vocabulary")};
    load_weights(archive, *saved.model);
    return saved;
  } catch (const Error& error) {
    archive.refuse(error);
  }
}

void load_weights(const Archive& archive, CharacterModel& model) {
  check_weights(archive, model);
  load_module(archive, weights_prefix, model);
}

SavedModel load(const std::string& directory_or_file) {
  return make_model(load_archive(checkpoint_path(directory_or_file)));
}

}  // namespace carousel
