#include "expect_error.h"
#include "parameter_gradients.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/encoder_decoder.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/reduce.h>

#include <cmath>
#include <map>

namespace carousel {
namespace {

using test::expect_difference_quotients;
using test::expect_error;

// Tolerances are for double, where a rounding is 1e-16 of a number near 1: two ways to the same values and gradients
// differ by the order of some hundred additions, which stays within 1e-13; a softmax adds up to 1 within 1e-14.

EncoderDecoderConfig small(const std::string& model, const std::string& attention) {
  return {.model = model,
          .attention = attention,
          .source_vocabulary = 7,
          .target_vocabulary = 6,
          .embedding_size = 3,
          .hidden_size = 4};
}

EncoderDecoder make(const EncoderDecoderConfig& config, DType dtype = DType::float64) {
  Rng rng(1);
  return EncoderDecoder(config, layer_kind(config.model).default_config(), rng, dtype);
}

Tensor tokens(const std::vector<int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

// Three sources of lengths 4, 2 and 0, and what is taught for them; 5 is the padding.
const SourceBatch source{.tokens = tokens({1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0}, {3, 4}),
                         .lengths = tokens({4, 2, 0}, {3})};
const Tensor targets = tokens({1, 2, 3, 0, 4, 5, 0, 5, 5}, {3, 3});
const CrossEntropyOptions ignoring{.ignore_index = 5};

Variable loss_of(const EncoderDecoder& model) { return model.loss(source, inputs_for(targets, 5), targets, ignoring); }

/// Every attention with every kind of layer.
class EncoderDecoders : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  EncoderDecoder model_ = make(small(std::get<0>(GetParam()), std::get<1>(GetParam())));
};

TEST_P(EncoderDecoders, ParameterGradientsAreDifferenceQuotients) {
  expect_difference_quotients(model_, [this] { return loss_of(model_); });
}

TEST_P(EncoderDecoders, PaddingChangesNothing) {
  loss_of(model_).backward();
  std::vector<Tensor> whole;
  for (const NamedParameter& parameter : model_.parameters()) whole.push_back(test::gradient_of(parameter).clone());
  const Tensor logits = model_.forward(source, inputs_for(targets, 5)).value();
  model_.zero_grad();
  // The batch's loss is the mean over its six targets; each row alone has 3, 2 and 1 of them.
  const std::vector<int64_t> source_lengths{4, 2, 0}, target_lengths{3, 2, 1};
  for (int64_t row = 0; row < 3; ++row) {
    const int64_t steps = source_lengths[static_cast<size_t>(row)], taught = target_lengths[static_cast<size_t>(row)];
    // A source without symbols still needs a step to stand in.
    const SourceBatch alone{.tokens = source.tokens.slice(0, {row, row + 1}).slice(1, {0, std::max<int64_t>(1, steps)}),
                            .lengths = steps == 0 ? tokens({0}, {1}) : Tensor()};
    const Tensor taught_row = targets.slice(0, {row, row + 1}).slice(1, {0, taught});
    const Variable row_logits = model_.forward(alone, inputs_for(taught_row, 5));
    EXPECT_TRUE(all_close(row_logits.value().select(0, 0), logits.select(0, row).slice(0, {0, taught}), 0, 1e-13));
    (cross_entropy(row_logits, taught_row) * (static_cast<double>(taught) / 6)).backward();
  }
  const std::vector<NamedParameter> parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(all_close(test::gradient_of(parameters[i]), whole[i], 0, 1e-13)) << parameters[i].name;
  }
}

TEST_P(EncoderDecoders, WhatStandsBehindTheEndOfASourceDoesNotMatter) {
  const Tensor inputs = inputs_for(targets, 5);
  const Tensor padded = where(before_end(source.lengths, 4), source.tokens, tokens({-999}, {1}));
  EXPECT_TRUE(identical(model_.forward({padded, source.lengths}, inputs).value().contiguous(),
                        model_.forward(source, inputs).value().contiguous()));
}

TEST_P(EncoderDecoders, TranslatesByTheLikeliestSymbolOfTheTaughtPass) {
  const int64_t start = 5;
  const auto translations = model_.translate(source, {.start = start, .end = 0, .max_length = 8});
  ASSERT_EQ(translations.size(), 3U);
  for (int64_t row = 0; row < 3; ++row) {
    SCOPED_TRACE(row);
    const SourceBatch alone{.tokens = source.tokens.slice(0, {row, row + 1}),
                            .lengths = source.lengths.slice(0, {row, row + 1})};
    std::vector<int64_t> read{start};
    for (int64_t t = 0; t < 8; ++t) {
      const Tensor logits = model_.forward(alone, Tensor::from(read, {1, t + 1})).value().select(0, 0).select(0, t);
      const auto likeliest = argmax(logits).item<int64_t>();
      if (likeliest == 0) break;
      read.push_back(likeliest);
    }
    EXPECT_EQ(translations[static_cast<size_t>(row)], std::vector<int64_t>(read.begin() + 1, read.end()));
  }
  EXPECT_EQ(model_.translate(source, {.start = start, .end = 0, .max_length = 0}),
            std::vector<std::vector<int64_t>>(3));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EncoderDecoders,
                         testing::Combine(testing::ValuesIn(layer_kind_names()), testing::Values("none", "additive")),
                         [](const testing::TestParamInfo<EncoderDecoders::ParamType>& made) {
                           return std::get<0>(made.param) + "_" + std::get<1>(made.param);
                         });

// ---- by hand, on Elman layers ----

class ByHand {
 public:
  explicit ByHand(const EncoderDecoder& model) {
    for (const NamedParameter& parameter : model.parameters()) parameters_[parameter.name] = parameter.variable;
  }
  Variable operator[](const std::string& name) const { return parameters_.at(name); }
  Variable row(const std::string& embedding, int64_t symbol) const {
    return select(parameters_.at(embedding + ".weight"), 0, symbol);
  }
  Variable elman(const std::string& layer, const Variable& x, const Variable& h) const {
    const auto& w = parameters_;
    return tanh(linear(x, w.at(layer + ".weight_ih"), w.at(layer + ".bias_ih")) +
                linear(h, w.at(layer + ".weight_hh"), w.at(layer + ".bias_hh")));
  }
  Variable head(const Variable& features) const {
    return linear(features, parameters_.at("head.weight"), parameters_.at("head.bias"));
  }

 private:
  std::map<std::string, Variable> parameters_;
};

Variable beside(const Variable& a, const Variable& b) {
  const std::vector<Variable> parts{a, b};
  return concatenate(parts, 0);
}

const std::vector<int64_t> one_source{3, 1, 6, 2}, one_input{5, 1, 4};
const SourceBatch one_batch{.tokens = tokens(one_source, {1, 4})};

// Both losses weigh the logits [T, V] alike; the gradients must agree.
void expect_equal(EncoderDecoder& model, const Variables& by_hand) {
  const Tensor weights = Rng(9).normal({3, 6}, 0, 1, DType::float64);
  const Variable ours = select(model.forward(one_batch, tokens(one_input, {1, 3})), 0, 0), theirs = stack(by_hand, 0);
  EXPECT_TRUE(all_close(ours.value(), theirs.value(), 0, 1e-13));
  sum(theirs * weights).backward();
  std::vector<Tensor> expected;
  for (const NamedParameter& parameter : model.parameters()) expected.push_back(parameter.variable.grad().clone());
  model.zero_grad();
  sum(ours * weights).backward();
  for (size_t i = 0; i < expected.size(); ++i) {
    const NamedParameter parameter = model.parameters()[i];
    EXPECT_TRUE(all_close(parameter.variable.grad(), expected[i], 0, 1e-13)) << parameter.name;
  }
}

TEST(EncoderDecoder, AFixedVectorIsTheLoopByHand) {
  EncoderDecoder model = make(small("rnn", "none"));
  const ByHand hand(model);
  Variable h = zeros({4}, DType::float64);
  for (const int64_t symbol : one_source) h = hand.elman("encoder", hand.row("source_embedding", symbol), h);
  Variables logits;
  for (const int64_t symbol : one_input) {
    h = hand.elman("decoder", hand.row("target_embedding", symbol), h);
    logits.push_back(hand.head(h));
  }
  expect_equal(model, logits);
}

TEST(EncoderDecoder, AdditiveAttentionIsTheLoopByHand) {
  EncoderDecoder model = make(small("rnn", "additive"));
  const ByHand hand(model);
  const int64_t steps = 4;
  Variables forward(steps), backward(steps), both;
  Variable h = zeros({4}, DType::float64), g = zeros({4}, DType::float64);
  for (size_t j = 0; j < steps; ++j) {
    forward[j] = h = hand.elman("encoder.forward", hand.row("source_embedding", one_source[j]), h);
    const size_t k = steps - 1 - j;
    backward[k] = g = hand.elman("encoder.backward", hand.row("source_embedding", one_source[k]), g);
  }
  for (size_t j = 0; j < steps; ++j) both.push_back(beside(forward[j], backward[j]));
  Variable s = backward[0];
  Variables logits, alignment;
  for (const int64_t symbol : one_input) {
    Variables energies;
    for (const Variable& annotation : both) {
      const Variable inner =
          linear(s, hand["attention.query.weight"], {}) + linear(annotation, hand["attention.key.weight"], {});
      energies.push_back(sum(select(hand["attention.score.weight"], 0, 0) * tanh(inner)));
    }
    const Variable weights = softmax(stack(energies, 0), 0);
    Variable context = zeros({8}, DType::float64);
    for (size_t j = 0; j < steps; ++j) context = context + select(weights, 0, static_cast<int64_t>(j)) * both[j];
    s = hand.elman("decoder", beside(hand.row("target_embedding", symbol), context), s);
    logits.push_back(hand.head(beside(s, context)));
    alignment.push_back(weights);
  }
  expect_equal(model, logits);
  EXPECT_TRUE(all_close(model.alignment(one_batch, tokens(one_input, {1, 3})).select(0, 0), stack(alignment, 0).value(),
                        0, 1e-13));
}

// ---- the rest ----

TEST(EncoderDecoder, NamesEveryParameterByItsPath) {
  const auto names = [](const EncoderDecoder& model) {
    std::string all;
    for (const NamedParameter& parameter : model.parameters()) all += parameter.name + " ";
    return all;
  };
  EXPECT_EQ(names(make(small("decay", "none"))),
            "source_embedding.weight encoder.weight target_embedding.weight decoder.weight head.weight head.bias ");
  EXPECT_EQ(names(make(small("decay", "additive"))),
            "source_embedding.weight encoder.forward.weight encoder.backward.weight attention.query.weight "
            "attention.key.weight attention.score.weight target_embedding.weight decoder.weight head.weight "
            "head.bias ");
}

TEST(EncoderDecoder, AlignmentIsADistributionOverTheSource) {
  const EncoderDecoder model = make(small("lstm", "additive"));
  const Tensor weights = model.alignment(source, inputs_for(targets, 5));
  EXPECT_EQ(weights.shape(), (Shape{3, 3, 4}));
  EXPECT_TRUE(
      all_close(sum(weights, {2}), Tensor::from({1, 1, 1, 1, 1, 1, 0, 0, 0}, {3, 3}, DType::float64), 0, 1e-14));
  EXPECT_TRUE(all(equal(weights.select(0, 1).slice(1, {.start = 2}), 0)));
  expect_error<ValueError>([] { make(small("lstm", "none")).alignment(source, targets); }, {"alignment", "none"});
}

TEST(EncoderDecoder, ARowThatEndsSilencesItselfOnly) {
  const EncoderDecoder model = make(small("gru", "additive"));
  for (const NamedParameter& parameter : model.parameters()) {
    Tensor value = parameter.variable.value();
    if (parameter.name == "head.bias") value.slice(0, {.start = 3, .stop = 4}).fill_(100);  // always 3
  }
  EXPECT_EQ(model.translate(source, {.start = 5, .end = 0, .max_length = 2}),
            (std::vector<std::vector<int64_t>>(3, {3, 3})));
  EXPECT_EQ(model.translate(source, {.start = 5, .end = 3, .max_length = 2}), std::vector<std::vector<int64_t>>(3));
}

TEST(EncoderDecoder, NoRowsAndNothingLeftOnTheTape) {
  const EncoderDecoder model = make(small("gru", "additive"));
  const SourceBatch none{.tokens = zeros({0, 4}, DType::int64)};
  EXPECT_EQ(model.forward(none, zeros({0, 3}, DType::int64)).shape(), (Shape{0, 3, 6}));
  EXPECT_TRUE(model.translate(none, {.start = 5, .end = 0, .max_length = 3}).empty());
  model.translate(source, {.start = 5, .end = 0, .max_length = 3});
  model.alignment(source, targets);
  loss_of(model).backward();
  EXPECT_EQ(live_nodes(), 0);
}

TEST(EncoderDecoder, ReadsWhatItIsTaughtOneStepLater) {
  EXPECT_TRUE(identical(inputs_for(targets, 5), tokens({5, 1, 2, 5, 0, 4, 5, 0, 5}, {3, 3})));
}

TEST(EncoderDecoder, NamesWhatDoesNotFit) {
  const EncoderDecoder model = make(small("gru", "additive"));
  const Tensor inputs = inputs_for(targets, 5);
  expect_error<ShapeError>([&] { model.forward({zeros({3, 0}, DType::int64)}, inputs); }, {"source", "[3, 0]"});
  expect_error<ShapeError>([&] { model.forward({zeros({2, 4}, DType::int64)}, inputs); }, {"rows", "3 and 2"});
  expect_error<ValueError>([&] { model.forward({zeros({3, 4})}, inputs); }, {"source", "int64", "float32"});
  expect_error<ShapeError>([&] { model.forward(source, zeros({3}, DType::int64)); }, {"inputs", "[3]"});
  expect_error<ValueError>([&] { model.forward({source.tokens, tokens({4, 2, 5}, {3})}, inputs); }, {"[0, 4]", "5"});
  expect_error<IndexError>([&] { model.forward({source.tokens + 1.0}, inputs); }, {"7"});
  expect_error<IndexError>([&] { model.forward(source, inputs + 1.0); }, {"6"});
  expect_error<ShapeError>([&] { model.loss(source, inputs, inputs.slice(1, {0, 2})); }, {"targets"});
  expect_error<IndexError>([&] { model.translate(source, {.start = 6, .end = 0, .max_length = 1}); }, {"start", "6"});
  expect_error<IndexError>([&] { model.translate(source, {.start = 5, .end = -1, .max_length = 1}); }, {"end", "-1"});
  expect_error<ValueError>([&] { model.translate(source, {.start = 5, .end = 0, .max_length = -1}); }, {"max_length"});
  for (const NamedParameter& parameter : model.parameters()) {
    Tensor value = parameter.variable.value();
    if (parameter.name == "head.bias") value.fill_(NAN);
  }
  expect_error<ValueError>([&] { model.translate(source, {.start = 5, .end = 0, .max_length = 1}); }, {"NaN"});
  expect_error<ValueError>([] { make(small("gru", "dot")); }, {"attention", "none, additive", "dot"});
  expect_error<ValueError>([] { make({.model = "gru"}); }, {"source_vocabulary"});
}

}  // namespace
}  // namespace carousel
