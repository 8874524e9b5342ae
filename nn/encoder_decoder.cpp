#include <carousel/nn/encoder_decoder.h>

#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/reduce.h>

#include <algorithm>

namespace carousel {
namespace {

EncoderDecoderConfig checked(EncoderDecoderConfig config) {
  check_fields("EncoderDecoder", fields(config));
  return config;
}

// Tokens [B, T] with at least one step.
void check_tokens(std::string_view name, const Tensor& tokens) {
  check<ShapeError>(tokens.rank() == 2 && tokens.size(1) > 0, "EncoderDecoder",
                    "{} must have a row for each sequence and at least one step: got {}", name,
                    to_string(tokens.shape()));
  check<ValueError>(tokens.dtype() == DType::int64, "EncoderDecoder", "{} must be int64: got {}", name,
                    to_string(tokens.dtype()));
}

Variable beside(const Variable& a, const Variable& b) {
  const std::vector<Variable> parts{a, b};
  return concatenate(parts, 1);
}

// [B, ..] a step as [B, T, ..], time-major in memory.
Variable sequence_of(const Variables& steps) { return transpose(stack(steps, 0), 0, 1); }

}  // namespace

Fields fields(EncoderDecoderConfig& config) {
  constexpr double most_symbols = 1 << 24, widest = 1 << 16;
  return {
      {.name = "model", .target = &config.model, .help = "kind of recurrent layer", .choices = layer_kind_names()},
      {.name = "attention",
       .target = &config.attention,
       .help = "how the decoder sees the source",
       .choices = {"none", "additive"}},
      {.name = "source_vocabulary",
       .target = &config.source_vocabulary,
       .help = "symbols of the source",
       .minimum = 1,
       .maximum = most_symbols},
      {.name = "target_vocabulary",
       .target = &config.target_vocabulary,
       .help = "symbols of the target",
       .minimum = 1,
       .maximum = most_symbols},
      {.name = "embedding_size",
       .target = &config.embedding_size,
       .help = "width of a symbol's vector",
       .minimum = 1,
       .maximum = widest},
      {.name = "hidden_size",
       .target = &config.hidden_size,
       .help = "width of decoder, attention and each direction of the encoder",
       .minimum = 1,
       .maximum = widest},
  };
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, const LayerConfig& layer, Rng& rng, DType dtype)
    : config_(checked(config)) {
  const LayerKind& kind = layer_kind(config.model);
  const int64_t embedding = config.embedding_size, hidden = config.hidden_size;
  const bool attends = config.attention == "additive";
  const int64_t context = attends ? 2 * hidden : 0;
  const auto make_layer = [&kind, &layer, &rng, hidden, dtype](int64_t input_size) {
    return kind.make({input_size, hidden, dtype}, layer, rng);
  };
  source_embedding_ = std::make_unique<Embedding>(config.source_vocabulary, embedding, Embedding::Config{}, rng, dtype);
  add_child("source_embedding", *source_embedding_);
  if (attends) {
    auto ahead = make_layer(embedding);
    both_ways_ = std::make_unique<Bidirectional>(std::move(ahead), make_layer(embedding));
    attention_ = std::make_unique<AdditiveAttention>(hidden, context, hidden, rng, dtype);
    add_child("encoder", *both_ways_);
    add_child("attention", *attention_);
  } else {
    encoder_ = make_layer(embedding);
    add_child("encoder", *encoder_);
  }
  target_embedding_ = std::make_unique<Embedding>(config.target_vocabulary, embedding, Embedding::Config{}, rng, dtype);
  decoder_ = make_layer(embedding + context);
  head_ = std::make_unique<Linear>(hidden + context, config.target_vocabulary, Linear::Config{}, rng, dtype);
  add_child("target_embedding", *target_embedding_);
  add_child("decoder", *decoder_);
  add_child("head", *head_);
}

EncoderDecoder::Decoding EncoderDecoder::encode(const SourceBatch& source) const {
  check_tokens("source", source.tokens);
  const int64_t batch = source.tokens.size(0), steps = source.tokens.size(1);
  check_lengths("EncoderDecoder", source.lengths, batch, steps);
  Tensor tokens = source.tokens;
  if (source.lengths.defined()) {  // padding need not be a symbol
    tokens = where(before_end(source.lengths, steps), tokens, Tensor::scalar(0, DType::int64));
  }
  const Variable symbols = source_embedding_->forward(tokens);
  const SequenceOptions options{.lengths = source.lengths};
  if (!attends()) return {{}, encoder_->forward(symbols, encoder_->initial_state(batch), options).state, {}};
  const SequenceResult both = both_ways_->forward(symbols, both_ways_->initial_state(batch), options);
  const std::vector<int64_t> halves(2, config_.hidden_size);
  return {.memory = attention_->memory(both.output, source.lengths),
          .state = both.state.part("backward"),
          .output = split(select(both.output, 1, 0), halves, 1)[1]};
}

EncoderDecoder::Step EncoderDecoder::step(const Variable& symbol, Decoding& decoding) const {
  AdditiveAttention::Glimpse glimpse;
  if (attends()) glimpse = attention_->look(decoding.output, decoding.memory);
  StepResult result = decoder_->step(attends() ? beside(symbol, glimpse.context) : symbol, decoding.state);
  decoding.state = std::move(result.state);
  decoding.output = result.output;
  return {attends() ? beside(result.output, glimpse.context) : result.output, glimpse.weights};
}

EncoderDecoder::Decoded EncoderDecoder::decode(const SourceBatch& source, const Tensor& inputs) const {
  check_tokens("inputs", inputs);
  Decoding decoding = encode(source);
  check<ShapeError>(inputs.size(0) == source.tokens.size(0), "EncoderDecoder",
                    "inputs must have as many rows as the source: got {} and {}", inputs.size(0),
                    source.tokens.size(0));
  const Variable symbols = target_embedding_->forward(inputs);
  if (!attends()) return {decoder_->forward(symbols, decoding.state).output, {}};
  Variables features, weights;
  for (const Variable& symbol : unbind(symbols, 1)) {
    Step now = step(symbol, decoding);
    features.push_back(std::move(now.features));
    weights.push_back(now.weights.detach());
  }
  return {sequence_of(features), sequence_of(weights).value()};
}

Variable EncoderDecoder::forward(const SourceBatch& source, const Tensor& inputs) const {
  return head_->forward(decode(source, inputs).features);
}

Variable EncoderDecoder::loss(const SourceBatch& source, const Tensor& inputs, const Tensor& targets,
                              const CrossEntropyOptions& options) const {
  return cross_entropy(forward(source, inputs), targets, options);
}

Tensor EncoderDecoder::alignment(const SourceBatch& source, const Tensor& inputs) const {
  check<ValueError>(attends(), "EncoderDecoder", "an alignment needs attention: got a model with attention none");
  const NoGrad no_grad;
  return decode(source, inputs).weights;
}

std::vector<std::vector<int64_t>> EncoderDecoder::translate(const SourceBatch& source,
                                                            const TranslateOptions& options) const {
  for (const auto& [name, symbol] : {std::pair("start", options.start), std::pair("end", options.end)}) {
    check<IndexError>(symbol >= 0 && symbol < config_.target_vocabulary, "EncoderDecoder",
                      "{} must be in [0, {}): got {}", name, config_.target_vocabulary, symbol);
  }
  check<ValueError>(options.max_length >= 0, "EncoderDecoder", "max_length must not be negative: got {}",
                    options.max_length);
  const NoGrad no_grad;
  Decoding decoding = encode(source);
  const int64_t batch = source.tokens.size(0);
  std::vector<std::vector<int64_t>> translations(static_cast<size_t>(batch));
  std::vector<bool> ended(static_cast<size_t>(batch), false);
  Tensor symbols = full({batch}, static_cast<double>(options.start), DType::int64);
  for (int64_t t = 0; t < options.max_length && std::find(ended.begin(), ended.end(), false) != ended.end(); ++t) {
    const Tensor logits = head_->forward(step(target_embedding_->forward(symbols), decoding).features).value();
    check<ValueError>(!any(isnan(logits)), "EncoderDecoder", "the logits hold NaN at step {}", t);
    symbols = argmax(logits, 1);  // a row that has ended goes on unheard
    const std::vector<int64_t> chosen = symbols.to_vector<int64_t>();
    for (size_t row = 0; row < chosen.size(); ++row) {
      if (chosen[row] == options.end) ended[row] = true;
      if (!ended[row]) translations[row].push_back(chosen[row]);
    }
  }
  return translations;
}

Tensor inputs_for(const Tensor& targets, int64_t start) {
  check_tokens("targets", targets);
  const std::vector<Tensor> parts{full({targets.size(0), 1}, static_cast<double>(start), DType::int64),
                                  targets.slice(1, {.stop = -1})};
  return concatenate(parts, 1);
}

}  // namespace carousel
