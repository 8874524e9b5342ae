#include "expect_error.h"
#include "leaky_layer.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/bidirectional.h>
#include <carousel/nn/registry.h>
#include <carousel/nn/stack.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

// Tolerances are for double, where a rounding is 1e-16 of a number near 1: a row alone and the row in a batch go
// through at most 6 steps of some 10 roundings each, in kernels that may add in another order. That is below 1e-13.

// Kinds whose state does not grow, so that states of rows of different lengths can be compared.
std::vector<std::string> recurrent_kinds() {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_kinds()) {
    if (!kind.form.residual) names.push_back(kind.name);
  }
  return names;
}

Tensor random(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, DType::float64);
}

std::unique_ptr<SequenceLayer> make_layer(const std::string& kind, Rng& rng, int64_t input_size = 3) {
  return layer_kind(kind).make({input_size, 4, DType::float64}, layer_kind(kind).default_config(), rng);
}

std::unique_ptr<Bidirectional> make(const std::string& kind) {
  Rng rng(1);
  auto forward = make_layer(kind, rng);
  return std::make_unique<Bidirectional>(std::move(forward), make_layer(kind, rng));
}

State random_state(const Bidirectional& layer, int64_t batch) {
  const State zero = layer.initial_state(batch);
  State state = zero;
  uint64_t seed = 100;
  for (const auto& [name, value] : zero.values()) state.set(name, Variable::parameter(random(value.shape(), seed++)));
  return state;
}

// Weighs every number differently, so that no gradient can hide behind another.
Variable weigh(const SequenceResult& result) {
  Variable total = sum(result.output * random(result.output.shape(), 50));
  uint64_t seed = 60;
  for (const auto& [name, value] : result.state.values()) total = total + sum(value * random(value.shape(), seed++));
  return total;
}

// Row `row` of a state, steps first .. stop - 1 of row `row` of a batch.
State row_of(const State& state, int64_t row) {
  State one;
  for (const auto& [name, value] : state.values()) one.set(name, value.value().slice(0, {row, row + 1}));
  return one;
}
Tensor piece(const Tensor& x, int64_t row, int64_t first, int64_t stop) {
  return x.slice(0, {row, row + 1}).slice(1, {first, stop});
}

void expect_equal_states(const State& a, const State& b) {
  for (const auto& [name, value] : a.values()) EXPECT_TRUE(all_close(value.value(), b[name].value(), 0, 1e-13)) << name;
}

TEST(Bidirectional, NamesParametersAndStateByDirection) {
  const auto layer = make("lstm");
  EXPECT_EQ(layer->parameters()[0].name, "forward.weight_ih");
  EXPECT_EQ(layer->parameters()[7].name, "backward.bias_hh");
  EXPECT_EQ(layer->initial_state(5)["backward.c"].shape(), (Shape{5, 4}));
  EXPECT_EQ(layer->input_size(), 3);
  EXPECT_EQ(layer->output_size(), 8);
  EXPECT_EQ(layer->dtype(), DType::float64);
}

TEST(Bidirectional, TheSecondLayerReadsFromTheEnd) {
  Rng rng(1);
  auto forward = std::make_unique<test::LeakyLayer>(1, 1, 0.5, rng);
  auto backward = std::make_unique<test::LeakyLayer>(1, 1, 0.5, rng);
  for (test::LeakyLayer* layer : {forward.get(), backward.get()}) {
    Tensor weight = layer->parameters()[1].variable.value();
    weight.fill_(1);
  }
  const Bidirectional layer(std::move(forward), std::move(backward));
  const Tensor x = Tensor::from({8, 4, 2, 1, 3, 99}, {2, 3, 1}, DType::float64);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{3, 2});
  const SequenceResult result = layer.forward(x, layer.initial_state(2), {.lengths = lengths});
  const Tensor y = Tensor::from({8, 10.5, 8, 5, 6, 2, 1, 2.5, 3.5, 3, 0, 0}, {2, 3, 2}, DType::float64);
  EXPECT_TRUE(identical(result.output.value(), y));
  EXPECT_TRUE(identical(result.state["backward.h"].value(), Tensor::from({10.5, 2.5}, {2, 1}, DType::float64)));
  EXPECT_EQ(result.state.count("backward.steps").to_vector<int64_t>(), (std::vector<int64_t>{3, 2}));
}

TEST(Bidirectional, ARowInAPaddedBatchIsTheRowAlone) {
  for (const std::string& kind : recurrent_kinds()) {
    SCOPED_TRACE(kind);
    const auto layer = make(kind);
    const std::vector<int64_t> lengths{5, 2, 0, 3};
    Tensor padded = random({4, 5, 3}, 2);
    const Tensor x = padded.clone();
    for (int64_t row = 0; row < 4; ++row) piece(padded, row, lengths[static_cast<size_t>(row)], 5).fill_(NAN);
    const State state = random_state(*layer, 4);
    const Variable input = Variable::parameter(padded);
    const SequenceResult whole = layer->forward(input, state, {.lengths = Tensor::from(lengths)});
    weigh(whole).backward();
    for (const NamedParameter& parameter : layer->parameters()) {
      EXPECT_TRUE(all_finite(parameter.variable.grad())) << parameter.name;
    }
    for (int64_t row = 0; row < 4; ++row) {
      SCOPED_TRACE(row);
      const int64_t length = lengths[static_cast<size_t>(row)];
      const SequenceResult alone = layer->forward(piece(x, row, 0, length), row_of(state, row));
      EXPECT_TRUE(all_close(piece(whole.output.value(), row, 0, length), alone.output.value(), 0, 1e-13));
      EXPECT_TRUE(all(equal(piece(whole.output.value(), row, length, 5), 0)));
      EXPECT_TRUE(all(equal(piece(input.grad(), row, length, 5), 0)));
      expect_equal_states(row_of(whole.state, row), alone.state);
    }
  }
}

TEST(Bidirectional, AResetCutsBothWays) {
  for (const std::string& kind : recurrent_kinds()) {
    SCOPED_TRACE(kind);
    const auto layer = make(kind);
    const Tensor x = random({2, 6, 3}, 3);
    Tensor reset = zeros({2, 6}, DType::boolean);
    for (const int64_t t : {0, 2, 5}) piece(reset, 1, t, t + 1).fill_(1);  // row 1 ends before the last of them
    const State state = random_state(*layer, 2);
    const Tensor lengths = Tensor::from(std::vector<int64_t>{6, 5});
    const SequenceResult whole = layer->forward(x, state, {.reset = reset, .lengths = lengths});
    const State given = row_of(state, 1), zero = layer->initial_state(1);
    State first_start = zero, second_start = zero;
    second_start.set_part("backward", given.part("backward"));
    const SequenceResult first = layer->forward(piece(x, 1, 0, 2), first_start);
    const SequenceResult second = layer->forward(piece(x, 1, 2, 5), second_start);
    EXPECT_TRUE(all_close(piece(whole.output.value(), 1, 0, 2), first.output.value(), 0, 1e-13));
    EXPECT_TRUE(all_close(piece(whole.output.value(), 1, 2, 5), second.output.value(), 0, 1e-13));
    expect_equal_states(row_of(whole.state, 1).part("forward"), second.state.part("forward"));
    expect_equal_states(row_of(whole.state, 1).part("backward"), first.state.part("backward"));
    const SequenceResult untouched = layer->forward(piece(x, 0, 0, 6), row_of(state, 0));
    EXPECT_TRUE(all_close(piece(whole.output.value(), 0, 0, 6), untouched.output.value(), 0, 1e-13));
  }
}

TEST(Bidirectional, GradientsPassTheCheckWithEveryMask) {
  const auto layer = make("gru");
  Tensor reset = zeros({2, 4}, DType::boolean);
  piece(reset, 0, 2, 3).fill_(1);
  const SequenceOptions options{.reset = reset, .lengths = Tensor::from(std::vector<int64_t>{4, 2})};
  const auto function = [&](std::span<const Variable> in) {
    return weigh(layer->forward(in[0], {{"forward.h", in[1]}, {"backward.h", in[2]}}, options));
  };
  const GradcheckResult result = gradcheck(function, {random({2, 4, 3}, 4), random({2, 4}, 5), random({2, 4}, 6)});
  EXPECT_TRUE(result) << result.message;
}

TEST(Bidirectional, NoStepsOrNoRows) {
  const auto layer = make("rnn");
  const State state = random_state(*layer, 3);
  const SequenceResult nothing = layer->forward(zeros({3, 0, 3}, DType::float64), state);
  EXPECT_EQ(nothing.output.shape(), (Shape{3, 0, 8}));
  EXPECT_TRUE(identical(nothing.state["backward.h"].value(), state["backward.h"].value()));
  const SequenceResult empty = layer->forward(zeros({0, 5, 3}, DType::float64), layer->initial_state(0));
  EXPECT_EQ(empty.output.shape(), (Shape{0, 5, 8}));
}

// Two layers of W = I without memory: what leaves the stack shows the dropout mask between them.
std::unique_ptr<SequenceLayer> mask_shower(Rng& rng) {
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  for (int i = 0; i < 2; ++i) {
    auto layer = std::make_unique<test::LeakyLayer>(64, 64, 0, rng);
    Tensor weight = layer->parameters()[1].variable.value();
    weight.copy_(eye(64, DType::float64));
    layers.push_back(std::move(layer));
  }
  return std::make_unique<Stack>(std::move(layers), 0.5);
}

TEST(Bidirectional, TheDirectionsDropDifferently) {
  Rng rng(1);
  auto forward = mask_shower(rng);
  const Bidirectional layer(std::move(forward), mask_shower(rng));
  // One step, so that both layers read the same one.
  const Tensor y =
      layer.forward(ones({32, 1, 64}, DType::float64), layer.initial_state(32), {.dropout_key = 7}).output.value();
  const Tensor kept = greater(y, 0);
  const Tensor both = logical_and(kept.slice(2, {.stop = 64}), kept.slice(2, {.start = 64}));
  // Two independent masks keep a quarter; one and the same would keep half. 2048 draws: five standard errors are 0.05.
  EXPECT_NEAR(sum(both.to(DType::float64)).item() / 2048, 0.25, 0.05);
}

TEST(Bidirectional, AVisitorHearsBothInTheOrderOfTheirReading) {
  const auto layer = make("decay");  // h_t = 0.9 h_{t-1} + W x: d loss / d h_t is what later steps weigh
  std::vector<std::pair<std::string, double>> forward, backward;
  const auto visitor = [&](const BackwardView& view) {
    auto& heard = view.layer == "encoder.backward" ? backward : forward;
    for (int64_t t = view.gradient[0].second.size(0) - 1; t >= 0; --t) {
      heard.emplace_back(view.layer + std::to_string(view.first_step + t),
                         view.gradient[0].second.select(0, t).select(0, 0).select(0, 0).item());
    }
  };
  const SequenceResult result =
      layer->forward(random({1, 3, 3}, 8), layer->initial_state(1), {.visitor = visitor, .path = "encoder"});
  sum(select(result.output, 1, 0)).backward();  // of the first step, which the backward layer reads last
  ASSERT_EQ(backward.size(), 3U);
  EXPECT_EQ(backward[0].first, "encoder.backward2");
  EXPECT_NEAR(backward[0].second, 1, 1e-12);
  EXPECT_NEAR(backward[2].second, 0.81, 1e-12);
  ASSERT_FALSE(forward.empty());
  EXPECT_EQ(forward.back().first, "encoder.forward0");
  EXPECT_NEAR(forward.back().second, 1, 1e-12);
}

TEST(Bidirectional, NamesWhatDoesNotFit) {
  const auto layer = make("rnn");
  const State state = layer->initial_state(2);
  const auto run = [&](const Shape& shape, const State& start, const SequenceOptions& options = {}) {
    layer->forward(zeros(shape, DType::float64), start, options);
  };
  expect_error<ShapeError>([&] { run({2, 4, 9}, state); }, {"[Bidirectional", "D = 3", "[2, 4, 9]"});
  expect_error<ShapeError>([&] { run({3, 4, 3}, state); }, {"[Bidirectional.forward]", "state h", "[2, 4]"});
  expect_error<IndexError>([&] { run({2, 4, 3}, State{{"forward.h", state["forward.h"]}}); }, {"entry", "'h'"});
  expect_error<ValueError>(
      [&] {
        run({2, 4, 3}, state, {.lengths = Tensor::from(std::vector<int64_t>{4, 5})});
      },
      {"lengths", "[0, 4]", "5"});
  expect_error<ShapeError>([&] { run({2, 4, 3}, state, {.reset = zeros({2, 3}, DType::boolean)}); }, {"reset"});
  Rng rng(1);
  expect_error<ValueError>([&] { Bidirectional(make_layer("rnn", rng), nullptr); }, {"two layers", "no backward"});
  expect_error<ShapeError>([&] { Bidirectional(make_layer("rnn", rng), make_layer("rnn", rng, 5)); }, {"3 and 5"});
  auto single = layer_kind("rnn").make({3, 4, DType::float32}, layer_kind("rnn").default_config(), rng);
  expect_error<ValueError>([&] { Bidirectional(make_layer("rnn", rng), std::move(single)); }, {"float64", "float32"});
}

}  // namespace
}  // namespace carousel
