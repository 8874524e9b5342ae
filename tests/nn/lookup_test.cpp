#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/node.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/character_model.h>
#include <carousel/nn/gru.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/rnn.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/runtime.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "../tensor/restore_threads.h"
#include "expect_error.h"
#include "sequence_suite.h"

/// What layers make of a Lookup: the same as of its rows, whether they look up first or multiply the table.
namespace carousel::test {
namespace {

constexpr int64_t symbols = 6, never_read = 2, read_behind_the_end = 4;

// Every symbol but two, over and over; `read_behind_the_end` stands where rows of some_lengths have ended.
Tensor some_tokens(int64_t batch, int64_t steps) {
  Tensor tokens({batch, steps}, DType::int64);
  auto* token = tokens.mutable_data<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t read = std::array<int64_t, 4>{0, 1, 3, 5}[static_cast<size_t>((b * 5 + t * t) % 4)];
      *token++ = t < steps - b ? read : read_behind_the_end;
    }
  }
  return tokens;
}

Tensor some_table(const SequenceLayer& layer) { return random({symbols, layer.input_size()}, 31, layer.dtype()); }

// Everything that one pass makes. `at_once`: by forward_lookup, else forward of the rows.
Everything everything_read(SequenceLayer& layer, const Tensor& numbers, const Tensor& tokens,
                           const SequenceOptions& options, bool at_once) {
  layer.zero_grad();
  const Lookup x{Variable::parameter(numbers), tokens};
  const State state = random_state(layer, tokens.size(0));
  const SequenceResult result =
      at_once ? layer.forward_lookup(x, state, options) : layer.forward(x.rows(), state, options);
  return everything_of(layer, x.table, state, result);
}

TEST_P(SequenceSuite, ALookupEqualsItsRowsInValuesAndEveryGradient) {
  const Tensor table = some_table(*layer_);
  for (const int64_t steps : {0, 1, 2, 5, 40}) {
    for (const int64_t batch : {1, 3}) {
      const Tensor tokens = some_tokens(batch, steps);
      const Tensor turned = tokens.transpose(0, 1).clone().transpose(0, 1);  // time-major in memory
      for (const SequenceOptions& options : {SequenceOptions{}, SequenceOptions{.dropout_key = 5},
                                             SequenceOptions{.reset = steps > 0 ? some_resets(batch, steps) : Tensor()},
                                             SequenceOptions{.lengths = some_lengths(batch, steps)}}) {
        SCOPED_TRACE(testing::Message() << "T " << steps << ", B " << batch << ", reset " << options.reset.defined()
                                        << ", lengths " << options.lengths.defined());
        const Everything expected = everything_read(*layer_, table, tokens, options, false);
        // At most 120 rows are added up in another order: some hundreds of roundings of 1e-16.
        expect_close(everything_read(*layer_, table, tokens, options, true), expected, 1e-12);
        expect_close(everything_read(*layer_, table, turned, options, true), expected, 1e-12);
      }
    }
  }
}

TEST_P(SequenceSuite, RowsOfATableThatNoTokenReadsDoNotMatter) {
  const int64_t batch = 3, steps = 7;
  const SequenceOptions options{.lengths = some_lengths(batch, steps)};
  const Tensor table = some_table(*layer_), tokens = some_tokens(batch, steps);
  Tensor bad = table.clone();
  bad.select(0, never_read).fill_(NAN);
  bad.select(0, read_behind_the_end).fill_(INFINITY);
  const Everything results = everything_read(*layer_, bad, tokens, options, true);
  expect_close(results, everything_read(*layer_, table, tokens, options, true), 0);
  for (const int64_t unread : {never_read, read_behind_the_end}) {
    const Tensor gradient = results[1].second.select(0, unread);
    EXPECT_TRUE(all_close(gradient, zeros_like(gradient), 0, 0)) << unread;
  }
}

TEST_P(SequenceSuite, ARowThatNoTokenReadsHasNoGradientBehindWeightsThatAreNotFinite) {
  for (const NamedParameter& parameter : layer_->parameters()) {
    Tensor value = parameter.variable.value();
    value.fill_(NAN);
  }
  const Tensor gradient = everything_read(*layer_, some_table(*layer_), some_tokens(2, 7), {}, true)[1].second;
  EXPECT_TRUE(all_close(gradient.select(0, never_read), zeros({layer_->input_size()}, DType::float64), 0, 0));
}

TEST_P(SequenceSuite, ASymbolThatIsNanSpreadsFromWhereItIsReadOn) {
  Tensor table = some_table(*layer_);
  table.select(0, 5).fill_(NAN);
  Tensor tokens = zeros({2, 8}, DType::int64);
  tokens.select(0, 1).slice(0, {.start = 3, .stop = 4}).fill_(5);
  const Tensor y = layer_->forward_lookup({table, tokens}, layer_->initial_state(2)).output.value();
  EXPECT_TRUE(all_finite(y.select(0, 0))) << "the other row";
  EXPECT_TRUE(all_finite(y.select(0, 1).slice(0, {.stop = 3}))) << "before";
  EXPECT_TRUE(all(isnan(y.select(0, 1).slice(0, {.start = 3})))) << "from there on";
}

TEST_P(SequenceSuite, ALookupShowsAVisitorWhatItsRowsWould) {
  const auto look = [&](bool at_once) {
    Everything seen;
    const auto visitor = [&](const BackwardView& view) {
      for (const auto* part : {&view.saved, &view.gradient}) {
        for (const auto& [name, value] : *part) {
          seen.emplace_back(name + std::to_string(view.first_step), value.clone());
        }
      }
    };
    everything_read(*layer_, some_table(*layer_), some_tokens(3, 40), {.visitor = visitor, .path = "it"}, at_once);
    return seen;
  };
  expect_close(look(true), look(false), 1e-12);
}

TEST_P(SequenceSuite, TokensChangedBetweenForwardAndBackwardGiveNoWrongGradient) {
  Tensor memory = some_tokens(3, 5).transpose(0, 1).clone();
  const auto gradient_after = [&](const auto& change) {
    const Lookup x{Variable::parameter(some_table(*layer_)), memory.transpose(0, 1)};  // time-major: no copy is needed
    const Variable loss = weigh(layer_->forward_lookup(x, layer_->initial_state(3)));
    change();
    loss.backward();
    return x.table.grad();
  };
  const Tensor before = gradient_after([] {});
  try {
    EXPECT_TRUE(identical(gradient_after([&] { memory.fill_(0); }), before));
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("changed in place"), std::string::npos) << error.what();
  }
}

TEST_P(SequenceSuite, NamesWhatDoesNotFitInALookup) {
  const State state = layer_->initial_state(2);
  const Tensor table = some_table(*layer_), tokens = zeros({2, 9}, DType::int64);
  const auto forward = [&](const Tensor& rows, const Tensor& which) { layer_->forward_lookup({rows, which}, state); };
  const std::string rule = "D = " + std::to_string(layer_->input_size());
  expect_error<ShapeError>([&] { forward(zeros({4, 9}, DType::float64), tokens); }, {rule.c_str(), "9]"});
  expect_error<ValueError>([&] { forward(table.to(DType::float32), tokens); }, {"float64", "float32"});
  expect_error<ShapeError>([&] { forward(table, zeros({18}, DType::int64)); }, {"[B, T", "[18"});
  expect_error<ValueError>([&] { forward(table, zeros({2, 9})); }, {"int64", "float32"});
  expect_error<ShapeError>([&] { forward(table, zeros({3, 9}, DType::int64)); }, {"state", "got"});
  expect_error<IndexError>([&] { forward(table, tokens + 6.0); }, {"[0, 6)", "got 6 at [0, 0]"});
}

// The operations behind a result.
std::set<Op> operations(const Variable& result) {
  std::set<Op> found;
  std::vector<std::shared_ptr<Node>> open{result.node()};
  while (!open.empty()) {
    const auto node = std::move(open.back());
    open.pop_back();
    if (!node) continue;
    found.insert(node->op());
    for (const Edge& parent : node->parents()) open.push_back(parent.node);
  }
  return found;
}

TEST(LookupPath, MultipliesTheTableOnlyWhereItIsShorterThanTheSequence) {
  Rng rng(1);
  std::map<std::string, std::unique_ptr<SequenceLayer>> layers;
  layers["rnn"] = std::make_unique<Rnn>(3, 4, RnnConfig{}, rng);
  layers["lstm"] = std::make_unique<Lstm>(3, 4, LstmConfig{}, rng);
  layers["gru"] = std::make_unique<Gru>(3, 4, GruConfig{}, rng);
  for (const auto& [name, layer] : layers) {
    const auto looks_up_first = [&, &layer = layer](int64_t rows) {
      const Lookup x{Variable::parameter(ones({rows, 3})), zeros({2, 4}, DType::int64)};
      return operations(layer->forward_lookup(x, layer->initial_state(2)).output).contains(Op::take_rows);
    };
    EXPECT_FALSE(looks_up_first(7)) << name;
    EXPECT_TRUE(looks_up_first(8)) << name;
    EXPECT_TRUE(looks_up_first(100)) << name;
  }
}

TEST(LookupPath, GivesTheSameBitsForAnyThreadCount) {
  const RestoreThreads restore;
  for (const std::string kind : {"rnn", "lstm", "gru", "decay"}) {
    SCOPED_TRACE(kind);
    Rng rng(1);
    const auto layer = layer_kind(kind).make({16, 96, DType::float32}, layer_kind(kind).default_config(), rng);
    const Tensor table = rng.normal({13, 16}), tokens = rng.integers({5, 300}, 0, 13);
    set_threads(1);
    const Everything one = everything_read(*layer, table, tokens, {}, true);
    for (const int count : {2, 3}) {
      set_threads(count);
      const Everything many = everything_read(*layer, table, tokens, {}, true);
      // Not of W_hh, a product over all rows of the sequence, where BLAS may change the last bits.
      for (size_t i = 0; i < one.size(); ++i) {
        if (one[i].first == "d weight_hh") continue;
        EXPECT_TRUE(identical(many[i].second, one[i].second)) << one[i].first;
      }
    }
  }
}

class LookupInModels : public testing::TestWithParam<std::string> {};

// A window of 24 tokens multiplies the table of 7 symbols; windows of 6 tokens, which hand on their state and take its
// gradient back, look up first.
TEST_P(LookupInModels, AWindowOfManyTokensEqualsWindowsOfFew) {
  const int64_t batch = 2, steps = 12, few = 3;
  Rng rng(1);
  const auto shape = CharacterModelConfig{
      .model = GetParam(), .vocabulary_size = 7, .embedding_size = 4, .hidden_size = 4, .layers = 2, .context = 16};
  const LayerConfig layer_config = layer_kind(GetParam()).default_config();
  CharacterModel model(shape, layer_config, rng, DType::float64);
  const Tensor tokens = rng.integers({batch, steps}, 0, 6);  // 6 never occurs
  const Tensor weights = rng.normal({batch, steps, 7}, 0, 1, DType::float64);
  for (const bool with_reset : {false, true}) {
    const auto gradients_of = [&](int64_t window) {
      model.zero_grad();
      State state = model.initial_state(batch);
      Variable loss = zeros({}, DType::float64);
      for (int64_t first = 0; first < steps; first += window) {
        const auto part = [&](const Tensor& x) { return x.slice(1, {.start = first, .stop = first + window}); };
        const std::vector<int64_t> left{window, std::clamp<int64_t>(7 - first, 0, window)};  // of lengths 12 and 7
        const SequenceOptions options{.reset = with_reset ? part(some_resets(batch, steps)) : Tensor(),
                                      .lengths = Tensor::from(left, {batch})};
        ModelResult result = model.forward(part(tokens), state, options);
        loss = loss + sum(result.logits * Variable(part(weights)));
        state = std::move(result.state);
      }
      loss.backward();
      Everything all{{"loss", loss.value()}};
      for (const NamedParameter& parameter : model.parameters()) {
        all.emplace_back(parameter.name, parameter.variable.grad());
      }
      return all;
    };
    expect_close(gradients_of(steps), gradients_of(few), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LookupInModels, testing::ValuesIn(layer_kind_names()),
                         [](const testing::TestParamInfo<std::string>& kind) { return kind.param; });

}  // namespace
}  // namespace carousel::test
