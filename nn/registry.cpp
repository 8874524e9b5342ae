#include <carousel/nn/registry.h>

#include <carousel/nn/decaying_memory.h>
#include <carousel/nn/gpt_block.h>
#include <carousel/nn/gru.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/mamba_block.h>
#include <carousel/nn/projected.h>
#include <carousel/nn/rnn.h>

namespace carousel {
namespace {

template <class Layer, class Config>
LayerKind kind(const std::string& name, const std::string& help) {
  return {.name = name,
          .help = help,
          .default_config = [] { return LayerConfig::of(Config{}); },
          .make = [](const LayerShape& shape, const LayerConfig& config, Rng& rng) -> std::unique_ptr<SequenceLayer> {
            return std::make_unique<Layer>(shape.input_size, shape.hidden_size, config.as<Config>(), rng, shape.dtype);
          }};
}

// A kind of block on a residual stream, which is as wide as the block; another input is projected onto it first.
template <class Block, class Config>
LayerKind block(const std::string& name, const std::string& help, const ModelForm& form) {
  return {.name = name,
          .help = help,
          .default_config = [] { return LayerConfig::of(Config{}); },
          .make = [](const LayerShape& shape, const LayerConfig& config, Rng& rng) -> std::unique_ptr<SequenceLayer> {
            auto layer = std::make_unique<Block>(shape, config.as<Config>(), rng);
            if (shape.input_size == shape.hidden_size) return layer;
            return std::make_unique<Projected>(shape.input_size, std::move(layer), rng);
          },
          .form = form};
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = {
      kind<Rnn, RnnConfig>("rnn", "the simple recurrent network of Elman (1990)"),
      kind<Lstm, LstmConfig>("lstm", "long short-term memory (Hochreiter, Schmidhuber 1997; Gers 2000)"),
      kind<Gru, GruConfig>("gru", "gated recurrent unit (Cho and others 2014)"),
      block<MambaBlock, MambaConfig>("ssm", "a selective state space: Mamba (Gu, Dao 2023)",
                                     {.residual = true, .norm = ModelForm::Norm::rms_norm}),
      block<GptBlock, GptConfig>("gpt", "the block of GPT-2: causal attention and an MLP (Radford and others 2019)",
                                 {.residual = true, .norm = ModelForm::Norm::layer_norm, .positions = true}),
      kind<DecayingMemory, DecayingMemoryConfig>("decay", "decaying memory, h <- lambda h + W x"),
  };
  return kinds;
}

std::vector<std::string> layer_kind_names() {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_kinds()) names.push_back(kind.name);
  return names;
}

const LayerKind& layer_kind(std::string_view name) {
  for (const LayerKind& candidate : layer_kinds()) {
    if (candidate.name == name) return candidate;
  }
  throw ValueError(fmt::format("[layer_kind] {}", unknown_name("model", name, layer_kind_names())));
}

}  // namespace carousel
