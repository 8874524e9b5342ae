#pragma once

#include <carousel/nn/layers.h>
#include <carousel/nn/positions.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/stack.h>

#include <memory>
#include <optional>
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
  int64_t context = 1024;  ///< of kinds with learned positions: tokens that a row can read
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

/// Embedding, a stack of one kind of sequence layer, and a linear head: tokens int64 [B, T] -> logits [B, T, V]. Around
/// residual blocks (ModelForm): embedding, learned positions if the kind has them, dropout, the blocks, a last norm,
/// and the embedding's own weights as head, which is GPT-2 for `gpt`. The State is the stack's, with positions also the
/// count "position" [B]. The constructor throws ValueError for a configuration outside its ranges or with two widths
/// where there must be one; forward and loss throw ShapeError for tokens or a state that do not fit, IndexError for a
/// token or a target outside the vocabulary, ValueError when a row would read more than the context.
class CharacterModel : public Module {
 public:
  CharacterModel(const CharacterModelConfig& config, const LayerConfig& layer, Rng& rng, DType dtype = DType::float32);

  const CharacterModelConfig& config() const { return config_; }
  const LayerConfig& layer_config() const { return layer_config_; }
  SequenceLayer& stack() { return *stack_; }
  const SequenceLayer& stack() const { return *stack_; }
  DType dtype() const { return stack_->dtype(); }
  /// Tokens that a row can read from the initial state; none: any number.
  std::optional<int64_t> context() const;
  /// Numbers that one row carries after t tokens; within the context, since beyond it the oldest are forgotten.
  int64_t state_size(int64_t t) const;
  /// To read token t, the head's included; beyond the context, to read all tokens in it again (generate).
  int64_t multiply_adds(int64_t t) const;
  State initial_state(int64_t batch) const;
  /// What the next training window begins with: the state after the last one, cut from its past. A model with a context
  /// begins each window afresh.
  State carry(const State& state) const;
  ModelResult forward(const Tensor& tokens, const State& state, const SequenceOptions& options = {}) const;
  LossResult loss(const Tensor& inputs, const Tensor& targets, const State& state,
                  const SequenceOptions& options = {}) const;

 private:
  SequenceResult read(const Tensor& tokens, const State& state, const SequenceOptions& options) const;
  Variable head(const Variable& y) const;

  CharacterModelConfig config_;
  LayerConfig layer_config_;
  std::unique_ptr<Embedding> embedding_;
  std::unique_ptr<LearnedPositions> positions_;  // null unless the kind has them
  std::unique_ptr<Stack> stack_;
  std::unique_ptr<Norm> norm_;    // null unless the layers are residual blocks
  std::unique_ptr<Linear> head_;  // null where the embedding is the head
};

}  // namespace carousel
