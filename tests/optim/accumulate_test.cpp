#include "../nn/expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/nn/character_model.h>
#include <carousel/nn/functional.h>
#include <carousel/optim/accumulate.h>
#include <carousel/optim/make_optimizer.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/reduce.h>

#include <array>
#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

constexpr int64_t ignored = -100;
const CrossEntropyOptions ignoring{.ignore_index = ignored};

// Rows of logits whose loss is `loss` nats for target 0: of two classes, log(1 + exp(x)) = loss.
Tensor logits_of_loss(int64_t rows, double loss) {
  Tensor logits = zeros({rows, 2});
  logits.select(1, 1).fill_(std::log(std::expm1(loss)));
  return logits;
}

struct MicroBatch {
  Tensor logits;   // [rows, 2]
  Tensor targets;  // int64 [rows]
};

const MicroBatch a{logits_of_loss(10, 2), zeros({10}, DType::int64)};
const MicroBatch b{logits_of_loss(100, 1), zeros({100}, DType::int64)};
const MicroBatch c{logits_of_loss(20, 3), full({20}, ignored, DType::int64)};

// A common offset of the second class stands for the weights.
Variable loss_of(const MicroBatch& batch, const Variable& offset) {
  const Variable features = batch.logits;
  return cross_entropy(linear(features, Tensor::from({1, 0, 0, 1}, {2, 2}), offset), batch.targets, ignoring);
}

MicroBatch together(std::span<const MicroBatch> parts) {
  std::vector<Tensor> logits, targets;
  for (const MicroBatch& part : parts) {
    logits.push_back(part.logits);
    targets.push_back(part.targets);
  }
  return {concatenate(logits, 0), concatenate(targets, 0)};
}

TEST(Accumulate, UnequalMicroBatchesAreOneBatch) {  // HD-12
  for (const std::vector<MicroBatch>& parts : {std::vector<MicroBatch>{a, b}, {a, b, c}, {c, b, a}}) {
    const MicroBatch whole = together(parts);
    const int64_t counted = counted_targets(whole.targets, ignored);
    EXPECT_EQ(counted, 110);
    const Variable in_parts = Variable::parameter(zeros({2})), at_once = Variable::parameter(zeros({2}));
    double loss = 0;
    for (const MicroBatch& part : parts) {
      loss += accumulate(loss_of(part, in_parts), {counted_targets(part.targets, ignored), counted});
    }
    EXPECT_NEAR(loss, 120.0 / 110, 1e-6);  // 1.090909; means of means give 1.5
    const Variable combined = loss_of(whole, at_once);
    EXPECT_NEAR(combined.value().item(), 120.0 / 110, 1e-6);
    combined.backward();
    EXPECT_TRUE(all_close(in_parts.grad(), at_once.grad(), 0, 1e-6));  // the bar of the handed case
  }
}

TEST(Accumulate, NothingCountedChangesNoWeightWhateverItsLossIs) {  // HD-12, micro-batch C
  for (const std::string& name : optimizer_names()) {
    NamedParameter offset{"offset", Variable::parameter(ones({2}))};
    const auto optimizer = make_optimizer(name, {offset}, {.weight_decay = 0.1});
    const int64_t counted = counted_targets(c.targets, ignored);
    EXPECT_EQ(accumulate(loss_of(c, offset.variable), {counted, counted}), 0);
    EXPECT_EQ(accumulate(loss_of(c, offset.variable) * Variable(Tensor::scalar(NAN)), {counted, counted}), 0);
    EXPECT_FALSE(offset.variable.grad().defined());
    optimizer->step(0.1);
    EXPECT_TRUE(identical(offset.variable.value(), ones({2}))) << name;
    // Without the helper: zero gradients, of which no optimiser makes a NaN.
    loss_of(c, offset.variable).backward();
    EXPECT_TRUE(identical(offset.variable.grad(), zeros({2})));
    optimizer->step(0.1);
    EXPECT_TRUE(all_finite(offset.variable.value())) << name;
  }
}

TEST(Accumulate, OneMicroBatchIsThePlainBackwardBitForBit) {
  const Variable plain = Variable::parameter(zeros({2})), accumulated = Variable::parameter(zeros({2}));
  const Variable loss = loss_of(a, plain);
  loss.backward();
  EXPECT_EQ(accumulate(loss_of(a, accumulated), {10, 10}), loss.value().item());
  EXPECT_TRUE(identical(plain.grad(), accumulated.grad()));
}

TEST(Accumulate, RowsOfAModelInPartsAreOneBatch) {
  Rng rng(1);
  CharacterModel model({.model = "lstm", .vocabulary_size = 7, .embedding_size = 6, .hidden_size = 8},
                       layer_kind("lstm").default_config(), rng);
  const Tensor inputs = rng.integers({5, 12}, 0, 7), targets = rng.integers({5, 12}, 0, 7);
  model.loss(inputs, targets, model.initial_state(5)).loss.backward();
  std::vector<Tensor> at_once;
  for (const NamedParameter& parameter : model.parameters()) at_once.push_back(parameter.variable.grad());
  model.zero_grad();
  for (const Slice& rows : {Slice{.stop = 1}, Slice{.start = 1}}) {
    const Tensor part = targets.slice(0, rows);
    const Variable loss = model.loss(inputs.slice(0, rows), part, model.initial_state(part.size(0))).loss;
    accumulate(loss, {counted_targets(part), counted_targets(targets)});
  }
  for (size_t i = 0; i < at_once.size(); ++i) {
    EXPECT_TRUE(all_close(model.parameters()[i].variable.grad(), at_once[i], 0, 1e-6)) << model.parameters()[i].name;
  }
}

TEST(Accumulate, RefusesSharesThatAreNone) {
  const Variable loss = Variable::parameter(ones({}));
  expect_error<ValueError>([&] { accumulate(loss, {3, 2}); }, {"[accumulate]", "3 and 2"});
  expect_error<ValueError>([&] { accumulate(loss, {-1, 2}); }, {"[accumulate]", "-1 and 2"});
}

}  // namespace
}  // namespace carousel
