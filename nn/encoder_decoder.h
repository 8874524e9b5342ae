#pragma once

#include <carousel/nn/additive_attention.h>
#include <carousel/nn/bidirectional.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/layers.h>
#include <carousel/nn/registry.h>

#include <memory>
#include <string>
#include <vector>

namespace carousel {

struct EncoderDecoderConfig {
  std::string model = "gru";
  std::string attention = "additive";
  int64_t source_vocabulary = 0;
  int64_t target_vocabulary = 0;
  int64_t embedding_size = 64;
  int64_t hidden_size = 64;  ///< of the decoder, of each direction of the encoder, and of the attention
};
Fields fields(EncoderDecoderConfig& config);

/// Sequences to translate, a row each.
struct SourceBatch {
  Tensor tokens;        ///< int64 [B, S], S > 0
  Tensor lengths = {};  ///< int64 [B]: what stands in row b from lengths[b] on does not matter; undefined: all S
};

struct TranslateOptions {
  int64_t start;       ///< the symbol that the decoder reads first
  int64_t end;         ///< the symbol that ends a row; not part of the translation
  int64_t max_length;  ///< symbols of a translation at most
};

/// From one sequence to another, by the encoder-decoders of 2014. With attention "none" the last state of the encoder
/// is all that the decoder gets (Sutskever, Vinyals, Le 2014; Cho and others 2014):
///   s_0 = encoder(x),   s_t = layer(s_{t-1}, y_{t-1}),   logits_t = W s_t + b.
/// With "additive" it looks at the encoder's outputs at each step (Bahdanau, Cho, Bengio 2014; AdditiveAttention):
///   h_j = [forward_j; backward_j],   c_t = sum_j a_tj h_j by the query s_{t-1},
///   s_t = layer(s_{t-1}, [y_{t-1}; c_t]),   logits_t = W [s_t; c_t] + b.
/// Simpler than the papers: one layer, of any kind; y are learned embeddings; Cho's decoder sees the encoder's state at
/// every step, not only the first; Bahdanau's starts from tanh(W_s backward_1), here from the backward layer's last
/// state and output as they are, and reads out through a maxout layer, which here is linear. Sutskever's encoder reads
/// the source from its end: reverse the tokens for that.
///
/// Parameters: source_embedding.weight [Vs, E], encoder.* (encoder.forward.*, encoder.backward.*), attention.*,
/// target_embedding.weight [Vt, E], decoder.*, head.weight [Vt, H or 3H], head.bias [Vt]. `layer` holds the fields of
/// the chosen kind. The constructor throws ValueError for a configuration outside its ranges; the methods throw
/// ShapeError or ValueError for tensors that do not fit, IndexError for a token outside its vocabulary.
class EncoderDecoder : public Module {
 public:
  EncoderDecoder(const EncoderDecoderConfig& config, const LayerConfig& layer, Rng& rng, DType dtype = DType::float32);

  const EncoderDecoderConfig& config() const { return config_; }

  /// Logits [B, T, Vt] of the symbol that follows each of `inputs`, int64 [B, T], T > 0 (teacher forcing).
  Variable forward(const SourceBatch& source, const Tensor& inputs) const;
  /// Mean nats a target, int64 [B, T]; those that equal ignore_index, the padding, count nothing.
  Variable loss(const SourceBatch& source, const Tensor& inputs, const Tensor& targets,
                const CrossEntropyOptions& options = {}) const;
  /// The weights a_tj by which `inputs` look at the source: [B, T, S], without history. Throws ValueError when there is
  /// no attention.
  Tensor alignment(const SourceBatch& source, const Tensor& inputs) const;
  /// The likeliest symbol, step by step, for each row until its end. Records no graph. Throws ValueError for options
  /// outside their ranges and logits that hold NaN.
  std::vector<std::vector<int64_t>> translate(const SourceBatch& source, const TranslateOptions& options) const;

 private:
  /// What the decoder looks at, and where it stands.
  struct Decoding {
    AdditiveAttention::Memory memory;  // undefined without attention
    State state;
    Variable output;  // [B, H], the query
  };
  struct Step {
    Variable features;  // [B, ..], what the head reads
    Variable weights;   // [B, S]; undefined without attention
  };
  struct Decoded {
    Variable features;  // [B, T, ..]
    Tensor weights;     // [B, T, S]; undefined without attention
  };
  bool attends() const { return attention_ != nullptr; }
  Decoding encode(const SourceBatch& source) const;
  Step step(const Variable& symbol, Decoding& decoding) const;
  Decoded decode(const SourceBatch& source, const Tensor& inputs) const;

  EncoderDecoderConfig config_;
  std::unique_ptr<Embedding> source_embedding_, target_embedding_;
  std::unique_ptr<SequenceLayer> encoder_;        // without attention
  std::unique_ptr<Bidirectional> both_ways_;      // with
  std::unique_ptr<AdditiveAttention> attention_;  // with
  std::unique_ptr<SequenceLayer> decoder_;
  std::unique_ptr<Linear> head_;
};

/// What the decoder reads while `targets`, int64 [B, T], are taught: `start`, then every target but the last.
Tensor inputs_for(const Tensor& targets, int64_t start);

}  // namespace carousel
