#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/self_attention.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/storage.h>

#include <cmath>
#include <map>

namespace carousel {
namespace {

using test::expect_error;

// Tolerances are for double, where a rounding is 1e-16 of a number near 1: 1e-14 and 1e-13 where two ways differ by the
// order of a dozen additions, 1e-12 where whole layers, or 9 steps one by one, are compared with one pass.

Tensor numbers(const Shape& shape, uint64_t seed, DType dtype = DType::float64) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1, dtype);
}

// A layer whose attention is far from uniform.
std::unique_ptr<CausalSelfAttention> sharp(int64_t size, int64_t heads, DType dtype = DType::float64) {
  Rng rng(1);
  auto layer = std::make_unique<CausalSelfAttention>(size, CausalSelfAttentionConfig{.heads = heads}, rng, dtype);
  for (const NamedParameter& parameter : layer->parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(rng.normal(value.shape(), 0, 2 / std::sqrt(static_cast<double>(size)), dtype));
  }
  return layer;
}

TEST(CausalSelfAttention, BeginsAsGpt2Does) {
  Rng rng(2);
  const CausalSelfAttention layer(64, {.heads = 4, .depth = 8}, rng);
  const std::vector<NamedParameter> parameters = layer.parameters();
  ASSERT_EQ(parameters.size(), 4U);
  const std::vector<std::string> names{"c_attn.weight", "c_attn.bias", "c_proj.weight", "c_proj.bias"};
  const std::vector<Shape> shapes{{192, 64}, {192}, {64, 64}, {64}};
  const std::vector<double> deviations{0.02, 0, 0.02 / std::sqrt(16.0), 0};
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& value = parameters[i].variable.value();
    EXPECT_EQ(parameters[i].name, names[i]);
    EXPECT_EQ(value.shape(), shapes[i]);
    EXPECT_EQ(parameters[i].decay, value.rank() == 2);
    // 4096 draws at least: the deviation is met to 1 / sqrt(2 * 4096), about 1.1 %; four times that.
    EXPECT_NEAR(norm(value) / std::sqrt(static_cast<double>(value.numel())), deviations[i], 0.045 * deviations[i]);
  }
}

TEST(CausalSelfAttention, RefusesHeadsThatDoNotDivideTheSize) {
  Rng rng(3);
  expect_error<ValueError>([&] { CausalSelfAttention(6, {.heads = 4}, rng); }, {"[CausalSelfAttention]", "4 and 6"});
  expect_error<ValueError>([&] { CausalSelfAttention(0, {}, rng); }, {"positive", "got 0"});
  expect_error<ValueError>([&] { CausalSelfAttention(6, {.heads = 0}, rng); }, {"positive"});
}

TEST(CausalSelfAttention, RefusesAStateOfUnequalLengths) {
  const auto layer = sharp(4, 2);
  State state = layer->initial_state(1);
  state.set("keys", zeros({1, 2, 3, 2}, DType::float64));
  expect_error<ShapeError>([&] { layer->step(zeros({1, 4}, DType::float64), state); }, {"3, 0 and 0"});
  expect_error<ShapeError>([&] { layer->forward(zeros({1, 2, 4}, DType::float64), state); }, {"3, 0 and 0"});
}

TEST(CausalSelfAttention, OneHeadWithIdentityMapsIsTheFormula) {
  const auto layer = sharp(2, 1);
  for (const NamedParameter& parameter : layer->parameters()) {
    Tensor value = parameter.variable.value();
    value.fill_(0);
    for (int64_t row = 0; row < value.size(0) && value.rank() == 2; ++row)
      value.select(0, row).select(0, row % 2).fill_(1);
  }
  const Tensor x = Tensor::from({1, 0, 0, 2}, {1, 2, 2}, DType::float64);
  const Tensor y = layer->forward(x, layer->initial_state(1)).output.value();
  const double own = 1 / (1 + std::exp(-4 / std::sqrt(2.0)));  // step 1: scores 0 and 4, over sqrt(2)
  const Tensor expected = Tensor::from({1, 0, 1 - own, 2 * own}, {1, 2, 2}, DType::float64);
  EXPECT_TRUE(all_close(y, expected, 1e-14, 1e-15));
}

TEST(CausalSelfAttention, WeightsAreWhatTheOutputIsMadeOf) {
  const auto layer = sharp(4, 1);
  const Tensor x = numbers({2, 5, 4}, 4);
  const State state = layer->forward(numbers({2, 3, 4}, 5), layer->initial_state(2)).state;
  Tensor reset = zeros({2, 5}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 2, .stop = 3}).fill_(1);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{4, 5}, {2});
  const Tensor weights = layer->weights(x, state, {.reset = reset, .lengths = lengths});
  ASSERT_EQ(weights.shape(), (Shape{2, 1, 5, 8}));
  EXPECT_TRUE(all_close(sum(weights.select(0, 1), {-1}), ones({1, 5}, DType::float64), 1e-14));
  EXPECT_EQ(sum(weights.select(0, 0).select(1, 4)).item(), 0) << "behind the end of row 0";
  const Tensor after_reset = weights.select(0, 1).select(0, 0).select(0, 3);
  EXPECT_EQ(sum(after_reset.slice(0, {.stop = 5})).item(), 0);
  EXPECT_EQ(sum(after_reset.slice(0, {.start = 7})).item(), 0) << "the future";

  // y = W_proj (weights . values) + b_proj, and the values are those that the state holds where nothing was cut.
  const SequenceResult result = layer->forward(x, state);
  const Tensor mixed = matmul(layer->weights(x, state), result.state["values"].value()).select(1, 0);
  const auto parameters = layer->parameters();
  const Tensor y = matmul(mixed, parameters[2].variable.value().transpose(0, 1)) + parameters[3].variable.value();
  EXPECT_TRUE(all_close(result.output.value(), y, 1e-12, 1e-13));
}

TEST(CausalSelfAttention, WhatIsNotVisibleInTheStateDoesNotMatter) {
  const auto layer = sharp(4, 2);
  const Tensor x = numbers({2, 3, 4}, 6);
  for (const bool fused : {true, false}) {
    SCOPED_TRACE(fused ? "fused" : "unrolled");
    const auto run = [&](const Tensor& keys, const Tensor& values, const Tensor& visible) {
      State state{{"keys", Variable::parameter(keys)}, {"values", Variable::parameter(values)}};
      state.set_count("visible", visible);
      layer->zero_grad();
      const SequenceResult result = fused ? layer->forward(x, state) : layer->unroll(x, state);
      sum(square(result.output)).backward();
      return std::vector<Tensor>{result.output.value().clone(), state["keys"].grad(), state["values"].grad(),
                                 layer->parameters()[0].variable.grad().clone()};
    };
    Tensor keys = numbers({2, 2, 4, 2}, 7), values = numbers({2, 2, 4, 2}, 8), visible = ones({2, 4}, DType::int64);
    visible.select(0, 1).slice(0, {.stop = 2}).fill_(0);
    const std::vector<Tensor> before = run(keys.clone(), values.clone(), visible);
    keys.select(0, 1).slice(1, {.stop = 2}).fill_(NAN);
    values.select(0, 1).slice(1, {.stop = 2}).fill_(INFINITY);
    const std::vector<Tensor> after = run(keys, values, visible);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(all_close(after[i], before[i], 0, 1e-14)) << i;
    EXPECT_EQ(sum(abs(after[1].select(0, 1).slice(1, {.stop = 2}))).item(), 0);
  }
}

TEST(CausalSelfAttention, ResetsAndEndsLeaveZerosThatAreNotVisible) {
  const auto layer = sharp(4, 2);
  Tensor reset = zeros({2, 4}, DType::boolean);
  reset.select(0, 0).slice(0, {.start = 2, .stop = 3}).fill_(1);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{4, 1}, {2});
  const State before = layer->forward(numbers({2, 2, 4}, 9), layer->initial_state(2)).state;
  for (const bool fused : {true, false}) {
    const SequenceOptions options{.reset = reset, .lengths = lengths};
    const Tensor x = numbers({2, 4, 4}, 10);
    const State after = (fused ? layer->forward(x, before, options) : layer->unroll(x, before, options)).state;
    EXPECT_EQ(after.count("visible").to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0}));
    for (const std::string name : {"keys", "values"}) {
      const Tensor size = sum(abs(after[name].value()), {1, 3});
      EXPECT_TRUE(identical(greater(size, 0.0), after.count("visible").to(DType::boolean))) << name;
    }
  }
}

// The outputs of steps first .. of x [B, T, H], one call a step, and the state after them.
Tensor read_on(const CausalSelfAttention& layer, const Tensor& x, State& state) {
  const NoGrad no_grad;
  Tensor last;
  for (int64_t t = 0; t < x.size(1); ++t) {
    SequenceResult result = layer.forward(x.slice(1, {.start = t, .stop = t + 1}), state);
    state = std::move(result.state);
    last = result.output.value();
  }
  return last.squeeze(1);
}

TEST(CausalSelfAttention, TwoContinuationsOfOneStateDoNotDisturbEachOther) {
  const auto layer = sharp(8, 2);
  const Tensor prompt = numbers({2, 20, 8}, 11), one = numbers({2, 9, 8}, 12), two = numbers({2, 9, 8}, 13);
  State state = layer->initial_state(2);
  read_on(*layer, prompt, state);
  const State aside = state.detach();
  const Tensor kept = state["keys"].value().clone();
  State first = state, second = state;
  Tensor last_of_first, last_of_second;
  for (int64_t t = 0; t < 9; ++t) {  // in turns
    last_of_first = read_on(*layer, one.slice(1, {.start = t, .stop = t + 1}), first);
    last_of_second = read_on(*layer, two.slice(1, {.start = t, .stop = t + 1}), second);
  }
  const auto fresh = [&](const Tensor& more) {
    State whole = layer->forward(prompt, layer->initial_state(2)).state;
    return layer->forward(more, whole).output.value().select(1, -1);
  };
  EXPECT_TRUE(all_close(last_of_first, fresh(one), 0, 1e-12));
  EXPECT_TRUE(all_close(last_of_second, fresh(two), 0, 1e-12));
  EXPECT_TRUE(identical(state["keys"].value().contiguous(), kept));
  EXPECT_TRUE(identical(aside["keys"].value().contiguous(), kept));
  State again = aside;
  EXPECT_TRUE(all_close(read_on(*layer, one, again), last_of_first, 0, 1e-12));
}

TEST(CausalSelfAttention, AStepWritesItsOwnEntryOnly) {
  const auto layer = sharp(32, 4, DType::float32);
  const Tensor x = numbers({1, 2000, 32}, 14, DType::float32);
  State state = layer->initial_state(1);
  std::map<const Storage*, int> uses;
  for (int64_t t = 0; t < 2000; ++t) {
    read_on(*layer, x.slice(1, {.start = t, .stop = t + 1}), state);
    ++uses[state["keys"].value().storage().get()];
  }
  EXPECT_LE(uses.size(), 9U);  // room for 16, 34, 70, .. steps, seven times more until 2000
  // What one more step takes, in use at once or not: some tensors of 32 or 96 numbers. The cache holds half a megabyte.
  trim_storage_cache();
  const StorageStats before = storage_stats();
  read_on(*layer, x.slice(1, {.stop = 1}), state);
  const StorageStats after = storage_stats();
  EXPECT_LE(after.live_bytes + after.cached_bytes - before.live_bytes, 16384U);
}

TEST(CausalSelfAttention, LookingTakesNoRoomFromTheState) {
  const auto layer = sharp(8, 2);
  State state = layer->initial_state(1);
  read_on(*layer, numbers({1, 3, 8}, 15), state);
  const Storage* const cache = state["keys"].value().storage().get();
  layer->weights(numbers({1, 2, 8}, 16), state);
  read_on(*layer, numbers({1, 1, 8}, 17), state);
  EXPECT_EQ(state["keys"].value().storage().get(), cache);
}

TEST(CausalSelfAttention, AVisitorIsShownTheWeightsOfEveryStep) {
  const auto layer = sharp(4, 2);
  const Tensor x = numbers({2, 5, 4}, 18);
  const State state = layer->forward(numbers({2, 3, 4}, 19), layer->initial_state(2)).state.detach();
  SequenceOptions options{.lengths = Tensor::from(std::vector<int64_t>{5, 3}, {2}), .path = "layers.0"};
  const Tensor weights = layer->weights(x, state, options);
  int64_t expected = 4;
  options.visitor = [&](const BackwardView& view) {
    ASSERT_EQ(view.first_step, expected--);
    EXPECT_EQ(view.layer, "layers.0");
    ASSERT_EQ(view.saved[0].first, "weights");
    const Tensor whole = weights.select(2, view.first_step).slice(-1, {.stop = 4 + view.first_step});
    EXPECT_TRUE(all_close(view.saved[0].second.select(0, 0), whole, 1e-12, 1e-14));
    EXPECT_EQ(view.gradient[1].second.shape(), (Shape{1, 2, 2, 4 + view.first_step, 2}));
  };
  sum(layer->forward(x, state, options).output).backward();
  EXPECT_EQ(expected, -1);
}

TEST(CausalSelfAttention, AVisitorChangesNoNumber) {
  const auto layer = sharp(4, 2);
  Tensor reset = zeros({2, 6}, DType::boolean);
  reset.select(0, 0).slice(0, {.start = 3, .stop = 4}).fill_(1);
  const Tensor lengths = Tensor::from(std::vector<int64_t>{6, 4}, {2});
  const State past = layer->forward(numbers({2, 6, 4}, 20), layer->initial_state(2), {.reset = reset}).state;
  const auto run = [&](SequenceOptions options, const BackwardVisitor& visitor) {
    options.visitor = visitor;
    layer->zero_grad();
    const Variable x = Variable::parameter(numbers({2, 6, 4}, 21));
    State state{{"keys", Variable::parameter(past["keys"].value().clone())},
                {"values", Variable::parameter(past["values"].value().clone())}};
    state.set_count("visible", past.count("visible"));  // some are not
    const SequenceResult result = layer->forward(x, state, options);
    (sum(square(result.output)) + sum(result.state["keys"]) + sum(result.state["values"])).backward();
    std::vector<Tensor> all{result.output.value(), result.state["keys"].value(), x.grad(), state["keys"].grad(),
                            state["values"].grad()};
    for (const NamedParameter& parameter : layer->parameters()) all.push_back(parameter.variable.grad().clone());
    return all;
  };
  for (const SequenceOptions& options : {SequenceOptions{}, SequenceOptions{.reset = reset, .lengths = lengths}}) {
    const std::vector<Tensor> unseen = run(options, {}), watched = run(options, [](const BackwardView&) {});
    for (size_t i = 0; i < unseen.size(); ++i) EXPECT_TRUE(all_close(watched[i], unseen[i], 1e-12, 1e-13)) << i;
  }
}

}  // namespace
}  // namespace carousel
