#include "../nn/expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/registry.h>
#include <carousel/optim/bptt.h>
#include <carousel/optim/sgd.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <memory>

/// The gradients and updates of truncated backpropagation are those of its definition.
namespace carousel {
namespace {

using test::expect_error;

// h <- w h, whatever comes in.
class Fading : public SequenceLayer {
 public:
  explicit Fading(double w) { w_ = add_parameter("w", full({1}, w, DType::float64), Decay::no); }
  int64_t input_size() const override { return 1; }
  int64_t output_size() const override { return 1; }
  DType dtype() const override { return DType::float64; }
  int64_t state_size(int64_t) const override { return 1; }
  std::vector<StateShape> state_shapes(int64_t batch) const override { return {{"h", {batch, 1}, dtype()}}; }
  StepResult step(const Variable&, const State& state, const StepOptions& options) const override {
    const Variable h = w_ * reset_rows(state, options.reset)["h"];
    return {h, {{"h", h}}};
  }

 private:
  Variable w_;
};

Tensor nothing(int64_t steps) { return zeros({1, steps, 1}, DType::float64); }
State fading_from(const Variable& h) { return {{"h", h}}; }

// d h_3 / d w for w = 0.2 and h_0 = 0.9, read in calls of k1 steps.
double gradient_of_the_third(const BpttConfig& config) {
  Fading layer(0.2);
  BpttMemory memory{.start = fading_from(full({1, 1}, 0.9, DType::float64))};
  for (int64_t t = 0; t < 3; t += config.update_every) {
    const BpttResult result = forward_truncated(layer, nothing(config.update_every), memory, config);
    layer.zero_grad();
    select(result.output, 1, -1).backward();
    memory = result.memory;
  }
  return layer.parameters()[0].variable.grad().item();
}

TEST(Bptt, GoesBackSoManyStepsAndTakesTheStateThereAsItWasComputed) {
  for (const int64_t every : {1, 3}) EXPECT_DOUBLE_EQ(gradient_of_the_third({every, 3}), 0.108) << every;
  EXPECT_DOUBLE_EQ(gradient_of_the_third({1, 4}), 0.108);  // there are only three
  EXPECT_DOUBLE_EQ(gradient_of_the_third({1, 2}), 0.072);
  EXPECT_DOUBLE_EQ(gradient_of_the_third({1, 1}), 0.036);
}

TEST(Bptt, AGradientReachesTheStartAsLongAsTheWindowBeginsThere) {
  Fading layer(0.5);
  const Variable start = Variable::parameter(ones({1, 1}, DType::float64));
  BpttMemory memory{.start = fading_from(start)};
  std::vector<double> reached;
  for (int t = 0; t < 2; ++t) {
    const BpttResult result = forward_truncated(layer, nothing(1), memory, {.update_every = 1, .back = 2});
    sum(result.output).backward();
    reached.push_back(start.grad().item());
    Variable(start).zero_grad();
    memory = result.memory;
  }
  EXPECT_EQ(reached, (std::vector<double>{0.5, 0.25}));
  sum(forward_truncated(layer, nothing(1), memory, {.update_every = 1, .back = 2}).output).backward();
  EXPECT_FALSE(start.grad().defined());
}

struct Case {
  std::string kind;
  int64_t every, back;
  bool resets;
};

std::unique_ptr<SequenceLayer> layer_of(const std::string& kind) {
  Rng rng(7);
  const LayerKind& registered = layer_kind(kind);
  return registered.make({.input_size = 4, .hidden_size = 4, .dtype = DType::float64}, registered.default_config(),
                         rng);
}

constexpr int64_t batch = 3, steps = 11;  // not a multiple of most k1

Tensor some_resets() {
  Tensor reset = zeros({batch, steps}, DType::boolean);
  for (const auto& [row, t] : {std::pair{0, 3}, {1, 0}, {1, 4}, {1, 5}, {2, 10}})
    reset.select(0, row).slice(0, {t, t + 1}).fill_(1);
  return reset;
}

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> weights;
  State state;
};

std::vector<Tensor> weights_of(const Module& module) {
  std::vector<Tensor> weights;
  for (const NamedParameter& parameter : module.parameters()) weights.push_back(parameter.variable.value());
  return weights;
}

Variable loss_of(const Variable& output, const Tensor& targets) { return sum(square(output - Variable(targets))); }

constexpr double rate_of_test = 1e-3;

// BPTT(k1, k2) as it is written down: a state is kept for every step, each as it was computed last, and the tape of an
// update begins at the one k2 steps ago.
Trained by_definition(const Case& each, const Tensor& x, const Tensor& targets, const Tensor& reset) {
  const auto layer = layer_of(each.kind);
  Sgd optimizer(layer->parameters(), {});
  std::vector<State> states(steps + 1);
  states[0] = layer->initial_state(batch);
  Trained trained;
  for (int64_t first = 0; first < steps; first += each.every) {
    const int64_t end = std::min(first + each.every, steps), from = std::max<int64_t>(0, end - each.back);
    State state = states[static_cast<size_t>(from)];
    Variable loss = zeros({}, DType::float64);
    for (int64_t t = from; t < end; ++t) {
      const Tensor row_reset = reset.defined() ? reset.select(1, t) : Tensor();
      StepResult result = layer->step(x.select(1, t), state, {.reset = row_reset});
      state = result.state;
      states[static_cast<size_t>(t + 1)] = state.detach();
      if (t >= first) loss = loss + loss_of(result.output, targets.select(1, t));
    }
    optimizer.zero_grad();
    loss.backward();
    optimizer.step(rate_of_test);
    trained.losses.push_back(loss.value().item());
  }
  trained.weights = weights_of(*layer);
  trained.state = states.back();
  return trained;
}

class BpttOfEachKind : public testing::TestWithParam<Case> {};

TEST_P(BpttOfEachKind, UpdatesAreThoseOfTheDefinition) {
  const Case& each = GetParam();
  Rng rng(8);
  const Tensor x = rng.normal({batch, steps, 4}, 0, 1, DType::float64);
  const Tensor targets = rng.normal({batch, steps, 4}, 0, 1, DType::float64);
  const Tensor reset = each.resets ? some_resets() : Tensor();
  const Trained expected = by_definition(each, x, targets, reset);

  const auto layer = layer_of(each.kind);
  Sgd optimizer(layer->parameters(), {});
  const auto loss = [&targets](const Variable& output, int64_t first) {
    return loss_of(output, targets.slice(1, {first, first + output.size(1)}));
  };
  const BpttTrace trace = train_truncated(
      *layer, optimizer, {.inputs = x, .reset = reset}, loss,
      {.windows = {.update_every = each.every, .back = each.back}, .rate = [](int64_t) { return rate_of_test; }});
  // Losses near 100, sums of at most 11 steps in another order, through 11 updates: some hundred roundings of 1e-14.
  ASSERT_EQ(trace.losses.size(), expected.losses.size());
  for (size_t i = 0; i < trace.losses.size(); ++i) EXPECT_NEAR(trace.losses[i], expected.losses[i], 1e-11) << i;
  const std::vector<Tensor> weights = weights_of(*layer);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_TRUE(all_close(weights[i], expected.weights[i], 0, 1e-11)) << layer->parameters()[i].name;
  }
  for (const auto& [name, value] : trace.state.values()) {
    EXPECT_TRUE(all_close(value.value(), expected.state[name].value(), 0, 1e-11)) << name;
    EXPECT_FALSE(value.requires_grad());
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* kind : {"rnn", "lstm", "gru", "ssm", "decay", "gpt"}) {
    for (const auto& [every, back] :
         {std::pair{1, 1}, {1, 4}, {2, 5}, {3, 3}, {3, 4}, {2, 6}, {4, 4}, {3, 20}, {11, 11}}) {
      for (const bool resets : {false, true}) all.push_back({kind, every, back, resets});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Windows, BpttOfEachKind, testing::ValuesIn(cases()), [](const auto& each) {
  const Case& param = each.param;
  return fmt::format("{}_{}_{}{}", param.kind, param.every, param.back, param.resets ? "_resets" : "");
});

// A model whose windows are to be compared bit for bit.
CharacterModel model_of(const std::string& kind) {
  Rng rng(3);
  return CharacterModel({.model = kind,
                         .vocabulary_size = 9,
                         .embedding_size = 8,
                         .hidden_size = 8,
                         .layers = 2,
                         .dropout = 0.3,
                         .context = 12},
                        layer_kind(kind).default_config(), rng);
}

TEST(Bptt, WithoutOverlapItIsTheTrainersLoopBitForBit) {
  const Tensor text = Rng(4).integers({2, 31}, 0, 9);
  for (const std::string& kind : layer_kind_names()) {
    SCOPED_TRACE(kind);
    const CharacterModel by_hand = model_of(kind), by_call = model_of(kind);
    Sgd one(by_hand.parameters(), {}), other(by_call.parameters(), {});
    State state = by_hand.initial_state(2);
    BpttMemory memory{.start = by_call.initial_state(2)};
    for (int64_t first = 0; first < 30; first += 6) {
      const Tensor inputs = text.slice(1, {first, first + 6}), targets = text.slice(1, {first + 1, first + 7});
      const SequenceOptions options{.dropout_key = static_cast<uint64_t>(first)};
      const LossResult expected = by_hand.loss(inputs, targets, state, options);
      const BpttResult result = forward_truncated(by_call, inputs, memory, {.update_every = 6, .back = 6}, options);
      const Variable loss = cross_entropy(result.output, targets);
      EXPECT_TRUE(identical(loss.value(), expected.loss.value()));
      one.zero_grad();
      expected.loss.backward();
      one.step(0.1);
      other.zero_grad();
      loss.backward();
      other.step(0.1);
      state = by_hand.carry(expected.state);
      memory = result.memory;
      EXPECT_FALSE(memory.inputs.defined());
    }
    for (size_t i = 0; i < by_hand.parameters().size(); ++i) {
      EXPECT_TRUE(identical(weights_of(by_hand)[i], weights_of(by_call)[i])) << by_hand.parameters()[i].name;
    }
  }
}

TEST(Bptt, OneCallATextIsOneCallAWindow) {
  const Tensor text = Rng(5).integers({2, 25}, 0, 9);
  const auto train = [&text](int64_t window, const CharacterModel& model) {
    Sgd optimizer(model.parameters(), {});
    State state;
    for (int64_t begin = 0; begin < 24; begin += window) {
      const auto loss = [&text, begin](const Variable& logits, int64_t first) {
        const int64_t from = begin + first + 1;
        return cross_entropy(logits, text.slice(1, {from, from + logits.size(1)}));
      };
      state = train_truncated(model, optimizer, {.inputs = text.slice(1, {begin, begin + window}), .start = state},
                              loss, {.windows = {.update_every = 4, .back = 4}, .rate = [](int64_t) { return 0.1; }})
                  .state;
    }
    return weights_of(model);
  };
  const CharacterModel whole = model_of("gru"), windows = model_of("gru");
  const std::vector<Tensor> expected = train(24, whole), got = train(8, windows);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(identical(got[i], expected[i])) << i;
}

// The outputs for the last four of `tokens`, read from the initial state in calls of four.
Tensor last_outputs(const CharacterModel& model, const Tensor& tokens, const BpttConfig& config) {
  const NoGrad no_grad;
  BpttMemory memory{.start = model.initial_state(tokens.size(0))};
  Tensor output;
  for (int64_t first = 0; first < tokens.size(1); first += 4) {
    const BpttResult result = forward_truncated(model, tokens.slice(1, {first, first + 4}), memory, config);
    output = result.output.value();
    memory = result.memory;
  }
  return output.contiguous();
}

TEST(Bptt, AModelWithAContextAndCarryNothingSeeTheLastStepsAlone) {
  const Tensor tokens = Rng(6).integers({2, 20}, 0, 9);
  for (const std::string kind : {"gpt", "lstm"}) {
    CharacterModel model = model_of(kind);
    model.eval();
    const Tensor output = last_outputs(model, tokens, {.update_every = 4, .back = 12, .carry = Carry::nothing});
    const Tensor seen = model.forward(tokens.slice(1, {.start = 8}), model.initial_state(2)).logits.value();
    EXPECT_TRUE(identical(output, seen.slice(1, {.start = 8}).contiguous())) << kind;
    const Tensor carried = last_outputs(model, tokens, {.update_every = 4, .back = 12});
    EXPECT_EQ(identical(output, carried), kind == "gpt") << kind;
  }
}

TEST(Bptt, AVisitorCountsStepsFromTheWindowsBeginning) {
  const auto layer = layer_of("rnn");
  std::vector<int64_t> seen;
  SequenceOptions options;
  options.visitor = [&seen](const BackwardView& view) {
    for (int64_t t = view.gradient[0].second.size(0) - 1; t >= 0; --t) seen.push_back(view.first_step + t);
  };
  BpttMemory memory{.start = layer->initial_state(1)};
  for (int call = 0; call < 3; ++call) {
    seen.clear();
    const BpttResult result =
        forward_truncated(*layer, ones({1, 2, 4}, DType::float64), memory, {.update_every = 2, .back = 4}, options);
    sum(result.output).backward();
    memory = result.memory;
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(Bptt, ALossThatIsNotFiniteIsRefusedBeforeTheUpdate) {
  const auto layer = layer_of("rnn");
  Sgd optimizer(layer->parameters(), {});
  Tensor x = ones({1, 6, 4}, DType::float64);
  x.select(1, 4).fill_(NAN);
  std::vector<Tensor> before;
  const auto loss = [&](const Variable& output, int64_t first) {
    if (first == 4) {
      for (const Tensor& weight : weights_of(*layer)) before.push_back(weight.clone());
    }
    return sum(output);
  };
  expect_error<ValueError>(
      [&] {
        train_truncated(*layer, optimizer, {.inputs = x}, loss,
                        {.windows = {.update_every = 2, .back = 2}, .rate = [](int64_t) { return 0.1; }});
      },
      {"[train_truncated]", "finite", "nan", "update 2"});
  ASSERT_FALSE(before.empty());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(identical(weights_of(*layer)[i], before[i]));
}

TEST(Bptt, RefusesWhatMakesNoSense) {
  const auto layer = layer_of("rnn");
  const BpttMemory memory{.start = layer->initial_state(1)};
  const Tensor two = ones({1, 2, 4}, DType::float64);
  const auto run = [&](const BpttConfig& config, const SequenceOptions& options = {}) {
    forward_truncated(*layer, two, memory, config, options);
  };
  expect_error<ValueError>([&] { run({.update_every = 0, .back = 2}); }, {"[forward_truncated]", "0 and 2"});
  expect_error<ValueError>([&] { run({.update_every = 3, .back = 2}); }, {"update_every <= back", "3 and 2"});
  expect_error<ValueError>([&] { run({.update_every = 1, .back = 2}); }, {"1 to update_every = 1", "got 2"});
  expect_error<ValueError>([&] { run({2, 2}, {.lengths = zeros({1}, DType::int64)}); }, {"lengths", "ignored"});
  expect_error<ShapeError>([&] { run({2, 2}, {.reset = zeros({1, 3}, DType::boolean)}); }, {"reset", "[1, 3]"});
  expect_error<ShapeError>([&] { forward_truncated(*layer, ones({4}), memory, {2, 2}); }, {"[B, T, ..]", "[4]"});
  const BpttMemory long_memory{.start = memory.start, .inputs = ones({1, 5, 4}, DType::float64)};
  expect_error<ValueError>([&] { forward_truncated(*layer, two, long_memory, {2, 6}); }, {"back = 6", "5 and 2"});
  Sgd optimizer(layer->parameters(), {});
  const auto train = [&](const Tensor& inputs, const Tensor& reset, const BpttConfig& windows) {
    train_truncated(*layer, optimizer, {.inputs = inputs, .reset = reset},
                    [](const Variable& y, int64_t) { return sum(y); },
                    {.windows = windows, .rate = [](int64_t) { return 0.1; }});
  };
  expect_error<ValueError>([&] { train(two, {}, {2, 1}); }, {"[train_truncated]", "2 and 1"});
  expect_error<ShapeError>([&] { train(ones({4}), {}, {1, 1}); }, {"[train_truncated]", "[4]"});
  expect_error<ShapeError>([&] { train(two, zeros({1, 3}, DType::boolean), {1, 1}); }, {"[train_truncated]", "[1, 3]"});
}

}  // namespace
}  // namespace carousel
