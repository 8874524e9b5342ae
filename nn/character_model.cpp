#include <carousel/nn/character_model.h>

#include <carousel/autograd/matmul.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/init.h>
#include <carousel/tensor/factory.h>

#include <algorithm>
#include <limits>

namespace carousel {
namespace {

constexpr const char* position = "position";  // count [B] of the State: tokens that a row has read
constexpr uint64_t embedding_use = std::numeric_limits<uint64_t>::max();  // of the dropout key: no layer's

const ModelForm& form_of(const CharacterModelConfig& config) { return layer_kind(config.model).form; }

std::unique_ptr<Embedding> make_embedding(const CharacterModelConfig& config, Rng& rng, DType dtype) {
  const Embedding::Config own{.deviation = form_of(config).residual ? init::gpt2_deviation : 1};
  return std::make_unique<Embedding>(config.vocabulary_size, config.embedding_size, own, rng, dtype);
}

std::unique_ptr<LearnedPositions> make_positions(const CharacterModelConfig& config, Rng& rng, DType dtype) {
  if (!form_of(config).positions) return nullptr;
  return std::make_unique<LearnedPositions>(config.context, config.embedding_size, rng, dtype);
}

std::unique_ptr<Stack> make_stack(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype) {
  const LayerKind& kind = layer_kind(config.model);
  LayerShape shape{.input_size = config.embedding_size,
                   .hidden_size = config.hidden_size,
                   .dtype = dtype,
                   .depth = config.layers,
                   .dropout = config.dropout};
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  for (int64_t i = 0; i < config.layers; ++i) {
    layers.push_back(kind.make(shape, layer, rng));
    shape.input_size = config.hidden_size;
  }
  return std::make_unique<Stack>(std::move(layers), kind.form.residual ? 0 : config.dropout);
}

std::unique_ptr<Norm> make_norm(const CharacterModelConfig& config, DType dtype) {
  const ModelForm& form = form_of(config);
  if (!form.residual) return nullptr;
  if (form.norm == ModelForm::Norm::rms_norm) {
    return std::make_unique<RmsNorm>(config.hidden_size, RmsNorm::Config{}, dtype);
  }
  return std::make_unique<LayerNorm>(config.hidden_size, LayerNorm::Config{}, dtype);
}

std::unique_ptr<Linear> make_head(const CharacterModelConfig& config, Rng& rng, DType dtype) {
  if (form_of(config).residual) return nullptr;
  return std::make_unique<Linear>(config.hidden_size, config.vocabulary_size, Linear::Config{}, rng, dtype);
}

CharacterModelConfig checked(CharacterModelConfig config) {
  check_fields("CharacterModel", fields(config));
  check<ValueError>(!form_of(config).residual || config.embedding_size == config.hidden_size, "CharacterModel",
                    "embedding_size and hidden_size of {} must be one: got {} and {}", config.model,
                    config.embedding_size, config.hidden_size);
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
      {.name = "dropout",
       .target = &config.dropout,
       .help = "dropout between layers, or inside residual blocks",
       .minimum = 0,
       .maximum = 0.99},
      {.name = "context",
       .target = &config.context,
       .help = "tokens that the model can look back on",
       .minimum = 1,
       .maximum = 1 << 20,
       .aliases = {"n_positions"}},
  };
}

CharacterModel::CharacterModel(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype)
    : config_(checked(config)),
      layer_config_(layer),
      embedding_(make_embedding(config, rng, dtype)),
      positions_(make_positions(config, rng, dtype)),
      stack_(make_stack(config, layer, rng, dtype)),
      norm_(make_norm(config, dtype)),
      head_(make_head(config, rng, dtype)) {
  add_child("embedding", *embedding_);
  if (positions_) add_child("positions", *positions_);
  add_child("stack", *stack_);
  if (norm_) add_child("norm", *norm_);
  if (head_) add_child("head", *head_);
}

std::optional<int64_t> CharacterModel::context() const {
  return positions_ ? std::optional(positions_->context()) : std::nullopt;
}

int64_t CharacterModel::state_size(int64_t t) const { return stack_->state_size(std::min(t, context().value_or(t))); }

int64_t CharacterModel::multiply_adds(int64_t t) const {
  const int64_t head = config_.hidden_size * config_.vocabulary_size;
  if (t <= context().value_or(t)) return stack_->multiply_adds(t) + head;
  int64_t count = 0;
  for (int64_t again = 1; again <= *context(); ++again) count += stack_->multiply_adds(again) + head;
  return count;
}

State CharacterModel::initial_state(int64_t batch) const {
  State state = stack_->initial_state(batch);
  if (positions_) state.set_count(position, zeros({batch}, DType::int64));
  return state;
}

State CharacterModel::carry(const State& state) const {
  return positions_ ? initial_state(state.count(position).size(0)) : state.detach();
}

// What the stack makes of the tokens: from their rows of the embedding, unless something is to stand between.
SequenceResult CharacterModel::read(const Tensor& tokens, const State& state, const SequenceOptions& options) const {
  const double dropout = norm_ ? config_.dropout : 0;
  const Lookup symbols{embedding_->weight(), tokens};
  if (!positions_ && !drops(*this, dropout, options.dropout_key))
    return stack_->forward_lookup(symbols, state, options);

  Variable x = symbols.rows();
  Tensor next;
  if (positions_) {
    LearnedPositions::Result placed = positions_->forward(x, state.count(position), options);
    x = std::move(placed.output);
    next = std::move(placed.next);
  }
  x = dropout_in_training(*this, x, dropout, derived_key(options.dropout_key, embedding_use));
  SequenceResult result = stack_->forward(x, state, options);
  if (positions_) result.state.set_count(position, next);
  return result;
}

Variable CharacterModel::head(const Variable& y) const {
  return head_ ? head_->forward(y) : linear(norm_->forward(y), embedding_->weight(), {});
}

ModelResult CharacterModel::forward(const Tensor& tokens, const State& state, const SequenceOptions& options) const {
  check<ShapeError>(tokens.rank() == 2, "CharacterModel", "tokens must be [B, T]: got {}", to_string(tokens.shape()));
  SequenceResult result = read(tokens, state, options);
  return {head(result.output), std::move(result.state)};
}

LossResult CharacterModel::loss(const Tensor& inputs, const Tensor& targets, const State& state,
                                const SequenceOptions& options) const {
  ModelResult result = forward(inputs, state, options);
  return {cross_entropy(result.logits, targets), std::move(result.state)};
}

}  // namespace carousel
