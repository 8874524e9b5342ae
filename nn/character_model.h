#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/stack.h>

#include <memory>
#include <string>

namespace carousel {

/// What a character model is built from. `layer` holds the fields of the chosen kind.
struct CharacterModelConfig {
  std::string model = "rnn";
  int64_t vocabulary_size = 0;
  int64_t embedding_size = 128;
  int64_t hidden_size = 128;
  int64_t layers = 1;
  double dropout = 0;
};
Fields fields(CharacterModelConfig& config);

struct ModelResult {
  Variable logits;  ///< [B, T, V]
  State state;
};
struct LossResult {
  Variable loss;  ///< [] in nats per token
  State state;
};

/// Embedding, a stack of one kind of sequence layer, and a linear head: tokens int64 [B, T] -> logits [B, T, V]. The
/// constructor throws ValueError for a configuration outside its ranges; forward and loss throw ShapeError for tokens
/// or a state that do not fit, IndexError for a token or a target outside the vocabulary.
class CharacterModel : public Module {
 public:
  CharacterModel(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype = DType::float32);

  const CharacterModelConfig& config() const { return config_; }
  const LayerConfig& layer_config() const { return layer_config_; }
  SequenceLayer& stack() { return *stack_; }
  DType dtype() const { return stack_->dtype(); }
  State initial_state(int64_t batch) const { return stack_->initial_state(batch); }
  ModelResult forward(const Tensor& tokens, const State& state, const SequenceOptions& options = {}) const;
  LossResult loss(const Tensor& inputs, const Tensor& targets, const State& state,
                  const SequenceOptions& options = {}) const;

 private:
  CharacterModelConfig config_;
  LayerConfig layer_config_;
  std::unique_ptr<Embedding> embedding_;
  std::unique_ptr<Stack> stack_;
  std::unique_ptr<Linear> head_;
};

}  // namespace carousel
