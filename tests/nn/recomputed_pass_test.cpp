#include <carousel/nn/recomputed_pass.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/character_model.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>

#include <cmath>

#include "expect_error.h"
#include "sequence_suite.h"

/// Recomputation of every member of the suite, and of stacks of every kind.
namespace carousel::test {
namespace {

void expect_identical(const Everything& a, const Everything& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].second.defined(), b[i].second.defined()) << a[i].first;
    EXPECT_TRUE(!a[i].second.defined() || identical(a[i].second, b[i].second)) << a[i].first;
  }
}

// Everything of a pass that is made again in backward.
Everything made_again(SequenceLayer& layer, const Tensor& input, const SequenceOptions& options) {
  layer.zero_grad();
  const Variable x = Variable::parameter(input);
  const State state = random_state(layer, input.size(0));
  return everything_of(layer, x, state, recomputed_pass(layer, x, state, options));
}

TEST_P(SequenceSuite, RecomputedIsTheSameToTheBit) {
  for (const int64_t steps : {1, 2, 40}) {
    const Tensor reset = some_resets(3, steps), lengths = some_lengths(3, steps);
    Tensor x = random({3, steps, layer_->input_size()}, 30);
    for (const SequenceOptions& options :
         {SequenceOptions{}, SequenceOptions{.dropout_key = 5}, SequenceOptions{.reset = reset},
          SequenceOptions{.lengths = lengths}, SequenceOptions{.reset = reset, .lengths = lengths, .dropout_key = 6}}) {
      SCOPED_TRACE(testing::Message() << "T " << steps << ", reset " << options.reset.defined() << ", lengths "
                                      << options.lengths.defined() << ", dropout " << options.dropout_key.has_value());
      expect_identical(made_again(*layer_, x, options), everything(*layer_, x, options, true));
    }
    x.select(0, 2).slice(0, {.start = -1}).fill_(NAN);  // behind the end of the last row
    expect_identical(made_again(*layer_, x, {.lengths = lengths}), everything(*layer_, x, {.lengths = lengths}, true));
  }
}

TEST_P(SequenceSuite, ARecomputedLookupIsTheSameToTheBit) {
  const Tensor tokens = Tensor::from(std::vector<int64_t>{0, 1, 1, 3, 3, 0, 1, 1, 3, 0}, {2, 5});
  const auto gradients = [this, &tokens](bool again) {
    layer_->zero_grad();
    const Variable table = Variable::parameter(random({4, layer_->input_size()}, 31));
    const State state = random_state(*layer_, 2);
    const Lookup x{table, tokens};
    return everything_of(*layer_, table, state,
                         again ? recomputed_pass(*layer_, x, state, {}) : layer_->forward_lookup(x, state));
  };
  expect_identical(gradients(true), gradients(false));
}

TEST_P(SequenceSuite, AVisitorOfARecomputedPassSeesTheSame) {
  const Tensor x = random({3, 20, layer_->input_size()}, 32);
  const auto look = [this, &x](bool again) {
    Everything seen;
    const SequenceOptions options{.visitor = [&seen](const BackwardView& view) {
      for (const auto& [name, value] : view.saved) seen.emplace_back(view.layer + name, value.clone());
      for (const auto& [name, value] : view.gradient) seen.emplace_back(view.layer + "d" + name, value.clone());
    }};
    again ? made_again(*layer_, x, options) : everything(*layer_, x, options, true);
    return seen;
  };
  const Everything seen = look(true);
  EXPECT_FALSE(seen.empty());
  expect_identical(seen, look(false));
}

TEST_P(SequenceSuite, ARecomputedPassRefusesMasksThatWereChanged) {
  const Tensor x = random({3, 5, layer_->input_size()}, 33);
  for (const bool of_lengths : {false, true}) {
    const SequenceOptions options{.reset = some_resets(3, 5), .lengths = some_lengths(3, 5)};
    const Variable loss = weigh(recomputed_pass(*layer_, x, random_state(*layer_, 3), options));
    Tensor mask = of_lengths ? options.lengths : options.reset;
    mask.fill_(1);
    expect_error<ValueError>([&] { loss.backward(); }, {"[recomputed]", "changed in place"});
  }
}

TEST_P(SequenceSuite, ARecomputedPassRefusesAnotherMode) {
  const Variable loss = weigh(
      recomputed_pass(*layer_, random({2, 3, layer_->input_size()}, 34), layer_->initial_state(2), {.dropout_key = 1}));
  layer_->eval();
  expect_error<ValueError>([&] { loss.backward(); }, {"[recompute]", "it was in training"});
}

TEST_P(SequenceSuite, ARecomputedPassNamesWhatDoesNotFit) {
  const State state = layer_->initial_state(2);
  const Tensor wide = zeros({2, 4, 9}, DType::float64);
  expect_error<ShapeError>([&] { recomputed_pass(*layer_, wide, state, {}); }, {"[2, 4, 9]"});
  expect_error<IndexError>([&] { recomputed_pass(*layer_, wide, State(), {}); }, {"[State]"});
}

class RecomputedModel : public testing::TestWithParam<std::string> {
 protected:
  static CharacterModel model() {
    Rng rng(1);
    return {{.model = GetParam(),
             .vocabulary_size = 7,
             .embedding_size = 8,
             .hidden_size = 8,
             .layers = 3,
             .dropout = 0.3,
             .context = 64},
            layer_kind(GetParam()).default_config(),
            rng};
  }

  // Two windows, the state of the first carried on with its past.
  static Everything train(const CharacterModel& model, bool recompute) {
    Rng rng(2);
    const Tensor tokens = rng.integers({3, 21}, 0, 7);
    SequenceOptions options{.reset = some_resets(3, 10), .lengths = some_lengths(3, 10), .recompute = recompute};
    State state = model.initial_state(3);
    Variable total = Tensor::scalar(0);
    for (const int64_t first : {0, 10}) {
      options.dropout_key = first + 1;
      const Slice inputs{.start = first, .stop = first + 10}, targets{.start = first + 1, .stop = first + 11};
      const LossResult result = model.loss(tokens.slice(1, inputs), tokens.slice(1, targets), state, options);
      total = total + result.loss;
      state = result.state;
    }
    total.backward();
    Everything all{{"loss", total.value()}};
    for (const NamedParameter& parameter : model.parameters()) {
      all.emplace_back(parameter.name, parameter.variable.grad());
    }
    return all;
  }
};

TEST_P(RecomputedModel, LearnsTheSameToTheBit) { expect_identical(train(model(), true), train(model(), false)); }

TEST_P(RecomputedModel, RecordsNoMoreAndNothingUnderNoGrad) {
  const CharacterModel model = RecomputedModel::model();
  const Tensor tokens = zeros({2, 5}, DType::int64);
  const auto recorded = [&](bool recompute) {
    const ModelResult result = model.forward(tokens, model.initial_state(2), {.recompute = recompute});
    return live_nodes();
  };
  EXPECT_LE(recorded(true), recorded(false));
  const NoGrad scope;
  EXPECT_EQ(recorded(true), 0);
}

TEST_P(RecomputedModel, WithoutAFinalStateThereIsNone) {
  const CharacterModel model = RecomputedModel::model();
  const Tensor tokens = zeros({2, 5}, DType::int64);
  for (const bool recompute : {false, true}) {
    const SequenceOptions options{.recompute = recompute, .final_state = false};
    const ModelResult result = model.forward(tokens, model.initial_state(2), options);
    EXPECT_TRUE(result.state.values().empty());
    const Tensor logits = model.forward(tokens, model.initial_state(2)).logits.value();
    EXPECT_TRUE(identical(result.logits.value(), logits));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecomputedModel, testing::ValuesIn(layer_kind_names()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace carousel::test
