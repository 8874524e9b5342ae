#include <carousel/nn/evaluate.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/generate.h>
#include <carousel/nn/gpt_block.h>
#include <carousel/nn/init.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/storage.h>

#include <gtest/gtest.h>

#include <algorithm>

#include "expect_error.h"

/// Models around residual blocks: gpt and ssm.
namespace carousel {
namespace {

using test::expect_error;

CharacterModel make(const CharacterModelConfig& config, uint64_t seed = 1) {
  Rng rng(seed);
  return CharacterModel(config, layer_kind(config.model).default_config(), rng, DType::float64);
}

// Greedy choices should not hang on the last bits of nearly equal logits: weights larger than N(0, 0.02).
std::unique_ptr<CharacterModel> small_gpt(int64_t context, double dropout = 0) {
  Rng rng(1);
  auto model = std::make_unique<CharacterModel>(CharacterModelConfig{.model = "gpt",
                                                                     .vocabulary_size = 7,
                                                                     .embedding_size = 8,
                                                                     .hidden_size = 8,
                                                                     .layers = 2,
                                                                     .dropout = dropout,
                                                                     .context = context},
                                                layer_kind("gpt").default_config(), rng, DType::float64);
  for (const NamedParameter& parameter : model->parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(rng.normal(value.shape(), 0, 0.5, DType::float64));
  }
  return model;
}

// The likeliest token behind the last `context` tokens of `text`, all of them read at once.
int64_t likeliest(const CharacterModel& model, const std::vector<int64_t>& text, int64_t context) {
  const auto length = static_cast<int64_t>(text.size());
  const Tensor seen = Tensor::from(text).slice(0, {.start = std::max<int64_t>(0, length - context)}).unsqueeze(0);
  const Tensor logits = model.forward(seen, model.initial_state(1)).logits.value().select(0, 0).select(0, -1);
  const std::vector<double> values = logits.to_vector<double>();
  return std::max_element(values.begin(), values.end()) - values.begin();
}

TEST(ResidualModel, DropoutStandsBetweenTheEmbeddingAndTheBlocks) {
  for (const std::string kind : {"gpt", "ssm"}) {
    const CharacterModel model = make(
        {.model = kind, .vocabulary_size = 5, .embedding_size = 4, .hidden_size = 4, .dropout = 0.99, .context = 16});
    const Tensor tokens = zeros({4, 16}, DType::int64);
    const Tensor logits = model.forward(tokens, model.initial_state(4), {.dropout_key = 3}).logits.value();
    // 0.99^4 = 96 % of the embeddings are zeros, and nearly all branches: a norm leaves zero, and so does the head.
    EXPECT_GT(sum(equal(logits, 0).to(DType::int64)).item(), 0.8 * static_cast<double>(logits.numel())) << kind;
  }
}

TEST(Gpt, GeneratesPastItsContextFromTheLastTokensThatFit) {  // HD-29
  const auto held = small_gpt(8);
  const CharacterModel& model = *held;
  for (const auto& [prompt_length, length] : {std::pair(5, 20), {8, 1}, {12, 3}}) {
    Rng rng(2);
    const std::vector<int64_t> prompt = rng.integers({prompt_length}, 0, 7).to_vector<int64_t>();
    std::vector<int64_t> uncached = prompt;
    for (int i = 0; i < length; ++i) uncached.push_back(likeliest(model, uncached, 8));
    std::vector<int64_t> text = prompt;
    for (const int64_t token : generate(model, prompt, {.length = length, .sampling = {.temperature = 0}}, rng)) {
      text.push_back(token);
    }
    EXPECT_EQ(text, uncached) << prompt_length << " + " << length;
  }
}

TEST(Gpt, NamesTheContextWhenAskedForMore) {  // HD-29
  const auto held = small_gpt(8);
  const CharacterModel& model = *held;
  const Tensor tokens = zeros({1, 9}, DType::int64);
  expect_error<ValueError>([&] { model.forward(tokens, model.initial_state(1)); }, {"8", "9"});
  const State state = model.forward(tokens.slice(1, {.stop = 8}), model.initial_state(1)).state;
  expect_error<ValueError>([&] { model.forward(tokens.slice(1, {.stop = 1}), state); }, {"8", "9"});
}

TEST(Gpt, AResetBeginsATextInTheMiddleOfARow) {
  const auto held = small_gpt(8);
  const CharacterModel& model = *held;
  Rng rng(3);
  const Tensor tokens = rng.integers({2, 6}, 0, 7);
  Tensor reset = zeros({2, 6}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 4, .stop = 5}).fill_(1);
  const ModelResult result = model.forward(tokens, model.initial_state(2), {.reset = reset});
  const Tensor fresh =
      model.forward(tokens.slice(0, {.start = 1}).slice(1, {.start = 4}), model.initial_state(1)).logits.value();
  EXPECT_TRUE(all_close(result.logits.value().slice(0, {.start = 1}).slice(1, {.start = 4}), fresh, 1e-12, 1e-12));
  EXPECT_EQ(result.state.count("position").to_vector<int64_t>(), (std::vector<int64_t>{6, 2}));
}

TEST(Gpt, IsEvaluatedInConsecutiveWindowsOfItsContext) {
  const auto held = small_gpt(4);
  const CharacterModel& model = *held;
  Rng rng(4);
  const Tensor tokens = rng.integers({15}, 0, 7);  // 14 scored: three windows of 4, and 2 left over
  double nats = 0;
  for (int64_t first = 0; first < 14; first += 4) {
    const int64_t end = std::min<int64_t>(first + 4, 14);
    const Tensor inputs = tokens.slice(0, {.start = first, .stop = end}).unsqueeze(0);
    const Tensor targets = tokens.slice(0, {.start = first + 1, .stop = end + 1}).unsqueeze(0);
    nats += model.loss(inputs, targets, model.initial_state(1)).loss.value().item() * static_cast<double>(end - first);
  }
  EXPECT_NEAR(evaluate(model, tokens), nats / 14, 1e-12);
  EXPECT_NEAR(evaluate(model, tokens, {.window = 8}), nats / 14, 1e-12) << "two windows at a time";
  EXPECT_NEAR(evaluate(model, tokens.slice(0, {.stop = 3})),
              model
                  .loss(tokens.slice(0, {.stop = 2}).unsqueeze(0),
                        tokens.slice(0, {.start = 1, .stop = 3}).unsqueeze(0), model.initial_state(1))
                  .loss.value()
                  .item(),
              1e-12)
      << "less than a window";
}

TEST(Gpt, CarriesNothingFromWindowToWindowWhileOthersCarryTheirState) {
  const auto held = small_gpt(4);
  const CharacterModel& gpt = *held;
  const Tensor tokens = zeros({2, 4}, DType::int64);
  const State after = gpt.forward(tokens, gpt.initial_state(2)).state;
  EXPECT_EQ(gpt.carry(after).count("position").to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(gpt.carry(after)["0.keys"].size(2), 0);
  const CharacterModel ssm = make({.model = "ssm", .vocabulary_size = 7, .embedding_size = 8, .hidden_size = 8});
  const State carried = ssm.forward(tokens, ssm.initial_state(2)).state;
  EXPECT_TRUE(carried["0.h"].requires_grad());
  EXPECT_FALSE(ssm.carry(carried)["0.h"].requires_grad());
  EXPECT_TRUE(identical(ssm.carry(carried)["0.h"].value(), carried["0.h"].value()));
  EXPECT_FALSE(ssm.context().has_value());
}

TEST(Gpt, DropsTheEmbeddingAndBothBranchesInTrainingByAKey) {
  const auto held = small_gpt(8, 0.5);
  CharacterModel& model = *held;
  const Tensor tokens = zeros({2, 5}, DType::int64);
  const auto logits = [&](std::optional<uint64_t> key) {
    return model.forward(tokens, model.initial_state(2), {.dropout_key = key}).logits.value();
  };
  EXPECT_TRUE(identical(logits(1), logits(1)));
  EXPECT_FALSE(identical(logits(1), logits(2)));
  EXPECT_FALSE(identical(logits(1), logits({})));
  model.eval();
  EXPECT_TRUE(identical(logits(1), logits({})));
}

TEST(ResidualModels, ShareOneMatrixBetweenEmbeddingAndHead) {
  for (const std::string kind : {"gpt", "ssm"}) {
    const CharacterModel model =
        make({.model = kind, .vocabulary_size = 300, .embedding_size = 8, .hidden_size = 8, .context = 4});
    for (const NamedParameter& parameter : model.parameters()) EXPECT_NE(parameter.name.substr(0, 4), "head");
    const Variable embedding = model.parameters()[0].variable;
    const Tensor tokens = zeros({1, 4}, DType::int64);
    cross_entropy(model.forward(tokens, model.initial_state(1)).logits, tokens).backward();
    // Token 299 was never read: what it gets comes from the head alone.
    EXPECT_GT(norm(embedding.grad().select(0, 299)), 0) << kind;
  }
}

TEST(ResidualModels, ShowAttentionWeightsOfABlock) {
  Rng rng(6);
  const GptBlock block({.input_size = 8, .hidden_size = 8, .dtype = DType::float64}, {.heads = 2}, rng);
  const Tensor weights = block.weights(rng.normal({1, 5, 8}, 0, 1, DType::float64), block.initial_state(1));
  EXPECT_EQ(weights.shape(), (Shape{1, 2, 5, 5}));
  EXPECT_TRUE(all_close(sum(weights, {3}), ones({1, 2, 5}, DType::float64), 1e-14));  // a few roundings
  EXPECT_EQ(weights.select(2, 1).select(2, 2).to_vector<double>(), (std::vector<double>{0, 0})) << "the future";
}

TEST(ResidualModels, ABlockKeepsForBackwardNoNormAndNoActivation) {
  const int64_t batch = 4, steps = 64, width = 64;
  Rng rng(1);
  const GptBlock block({width, width, DType::float32}, {}, rng);
  const Variable x = Variable::parameter(rng.normal({batch, steps, width}));
  const uint64_t before = storage_stats().live_bytes;
  const SequenceResult result = block.forward(x, block.initial_state(batch));
  const auto kept = static_cast<double>(storage_stats().live_bytes - before);
  // Of the size of x: queries, keys and values, what attention makes of them, the stream between the branches, what
  // goes into GELU (4), and the result. Besides, a few numbers for each row.
  EXPECT_NEAR(kept / static_cast<double>(x.value().numel() * sizeof(float)), 10, 0.5);
}

TEST(ResidualModels, HaveOneWidth) {
  for (const std::string kind : {"gpt", "ssm"}) {
    expect_error<ValueError>(
        [&] { make({.model = kind, .vocabulary_size = 7, .embedding_size = 8, .hidden_size = 16}); },
        {"embedding_size", "8 and 16"});
  }
}

// What published models have, without the memory for their weights.
int64_t parameters_of(const CharacterModelConfig& config, const std::function<void(const CharacterModel&)>& look) {
  const init::ShapesOnly no_memory;
  const CharacterModel model = make(config);
  look(model);
  return model.parameter_count();
}

TEST(ResidualModels, KeepWhatThePublishedOnesKeep) {
  const CharacterModelConfig gpt2{.model = "gpt",
                                  .vocabulary_size = 50257,
                                  .embedding_size = 768,
                                  .hidden_size = 768,
                                  .layers = 12,
                                  .context = 1024};
  EXPECT_EQ(parameters_of(gpt2,
                          [](const CharacterModel& model) {
                            EXPECT_EQ(model.state_size(1), 18'432);
                            EXPECT_EQ(model.state_size(1024), 18'874'368);
                            EXPECT_EQ(model.state_size(100'000), 18'874'368) << "the window slides";
                            // 12 layers of 12 D^2 weights, scores and sums over t keys, and the head.
                            EXPECT_EQ(model.multiply_adds(1024), 12 * (12 * 768 * 768 + 2 * 768 * 1024) + 768 * 50257);
                            // Beyond, the whole window again: 1 + 2 + .. + 1024 keys.
                            EXPECT_EQ(model.multiply_adds(1025), int64_t{1024} * (12 * 12 * 768 * 768 + 768 * 50257) +
                                                                     int64_t{12} * 2 * 768 * (1024 * 1025 / 2));
                          }),
            124'439'808);
  const CharacterModelConfig mamba{
      .model = "ssm", .vocabulary_size = 50280, .embedding_size = 768, .hidden_size = 768, .layers = 24};
  EXPECT_EQ(parameters_of(mamba,
                          [](const CharacterModel& model) {
                            // The scan's states, and of the convolution's window the 3 inputs that the next step needs.
                            EXPECT_EQ(model.state_size(100'000), 24 * 1536 * (16 + 3));
                          }),
            129'135'360);
  const CharacterModelConfig elman{.model = "rnn", .vocabulary_size = 65, .embedding_size = 32, .hidden_size = 32};
  EXPECT_EQ(parameters_of(elman,
                          [](const CharacterModel& model) {
                            for (const int64_t t : {1, 100, 1024, 100'000}) EXPECT_EQ(model.state_size(t), 32);
                            EXPECT_EQ(model.multiply_adds(1), 32 * 32 + 32 * 32 + 32 * 65);
                          }),
            65 * 32 + 2 * (32 * 32 + 32) + 32 * 65 + 65);
}

}  // namespace
}  // namespace carousel
