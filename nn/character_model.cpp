#include <carousel/nn/character_model.h>

#include <carousel/nn/functional.h>

namespace carousel {
namespace {

std::unique_ptr<Stack> make_stack(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype) {
  const LayerKind& kind = layer_kind(config.model);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  for (int64_t i = 0; i < config.layers; ++i) {
    const int64_t input_size = i == 0 ? config.embedding_size : config.hidden_size;
    layers.push_back(kind.make({input_size, config.hidden_size, dtype}, layer, rng));
  }
  return std::make_unique<Stack>(std::move(layers), config.dropout);
}

CharacterModelConfig checked(CharacterModelConfig config) {
  check_fields("CharacterModel", fields(config));
  return config;
}

}  // namespace

Fields fields(CharacterModelConfig& config) {
  return {
      {.name = "model",
       .target = &config.model,
       .help = "kind of sequence layer",
       .choices = layer_kind_names(),
       .aliases = {"model_type"}},
      {.name = "vocabulary_size",
       .target = &config.vocabulary_size,
       .help = "symbols",
       .minimum = 1,
       .maximum = 1 << 24},
      {.name = "embedding_size",
       .target = &config.embedding_size,
       .help = "width of a symbol's vector",
       .minimum = 1,
       .maximum = 1 << 16,
       .aliases = {"embedding", "wordvec_size"}},
      {.name = "hidden_size",
       .target = &config.hidden_size,
       .help = "width of a layer",
       .minimum = 1,
       .maximum = 1 << 16,
       .aliases = {"hidden", "rnn_size"}},
      {.name = "layers",
       .target = &config.layers,
       .help = "layers, one above the other",
       .minimum = 1,
       .maximum = 1000,
       .aliases = {"num_layers", "n_layer"}},
      {.name = "dropout", .target = &config.dropout, .help = "dropout between layers", .minimum = 0, .maximum = 0.99},
  };
}

CharacterModel::CharacterModel(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype)
    : config_(checked(config)),
      layer_config_(layer),
      embedding_(std::make_unique<Embedding>(config.vocabulary_size, config.embedding_size, rng, dtype)),
      stack_(make_stack(config, layer, rng, dtype)),
      head_(std::make_unique<Linear>(config.hidden_size, config.vocabulary_size, Linear::Config{}, rng, dtype)) {
  add_child("embedding", *embedding_);
  add_child("stack", *stack_);
  add_child("head", *head_);
}

ModelResult CharacterModel::forward(const Tensor& tokens, const State& state, const SequenceOptions& options) const {
  check<ShapeError>(tokens.rank() == 2, "CharacterModel", "tokens must be [B, T]: got {}", to_string(tokens.shape()));
  SequenceResult result = stack_->forward(embedding_->forward(tokens), state, options);
  return {head_->forward(result.output), std::move(result.state)};
}

LossResult CharacterModel::loss(const Tensor& inputs, const Tensor& targets, const State& state,
                                const SequenceOptions& options) const {
  ModelResult result = forward(inputs, state, options);
  return {cross_entropy(result.logits, targets), std::move(result.state)};
}

}  // namespace carousel
