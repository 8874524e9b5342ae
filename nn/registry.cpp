#include <carousel/nn/registry.h>

#include <carousel/nn/rnn.h>

namespace carousel {
namespace {

template <class Layer, class Config>
LayerKind kind(std::string name, std::string help) {
  return {.name = std::move(name),
          .help = std::move(help),
          .default_config = [] { return LayerConfig::of(Config{}); },
          .make = [](const LayerShape& shape, const LayerConfig& config, Rng& rng) -> std::unique_ptr<SequenceLayer> {
            return std::make_unique<Layer>(shape.input_size, shape.hidden_size, config.as<Config>(), rng, shape.dtype);
          }};
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = {
      kind<Rnn, RnnConfig>("rnn", "the simple recurrent network of Elman (1990)"),
  };
  return kinds;
}

const LayerKind& layer_kind(std::string_view name) {
  std::vector<std::string> names;
  std::string list;
  for (const LayerKind& candidate : layer_kinds()) {
    if (candidate.name == name) {
      return candidate;
    }
    names.push_back(candidate.name);
    list += (list.empty() ? "" : ", ") + candidate.name;
  }
  const std::string nearest = nearest_name(name, names);
  throw ValueError(fmt::format("[layer_kind] model must be one of {}: got '{}'{}", list, name,
                               nearest.empty() ? "" : ", did you mean '" + nearest + "'?"));
}

}  // namespace carousel
