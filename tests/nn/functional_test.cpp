#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/nn/functional.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/storage.h>

#include <cmath>
#include <functional>
#include <vector>

namespace carousel {
namespace {

using test::expect_error;
using Inputs = std::span<const Variable>;

Tensor tokens(const std::vector<int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

struct Scored {
  double loss;
  std::vector<float> gradient;
};

Scored score(std::initializer_list<double> logits, int64_t target) {
  const auto classes = static_cast<int64_t>(logits.size());
  const Variable x = Variable::parameter(Tensor::from(logits, {1, classes}));
  const Variable loss = cross_entropy(x, tokens({target}, {1}));
  loss.backward();
  return {loss.value().item(), x.grad().to_vector<float>()};
}

TEST(CrossEntropy, ACommonOffsetChangesNothingHoweverBig) {  // HD-01
  for (const double offset : {1.0, 1e4, 1e6, 1e8, -1e8}) {
    const Scored scored = score({offset, offset}, 0);
    EXPECT_NEAR(scored.loss, std::log(2.0), 1e-6) << offset;  // the rounding of one float near 0.7, and the kernel's
    EXPECT_NEAR(scored.gradient[0], -0.5, 1e-5) << offset;
    EXPECT_NEAR(scored.gradient[1], 0.5, 1e-5) << offset;
  }
}

TEST(CrossEntropy, ExtremeLogitsAreExact) {  // HD-01
  const Scored right = score({1000, 0}, 0);
  EXPECT_EQ(right.loss, 0);
  EXPECT_EQ(right.gradient, (std::vector<float>{0, 0}));
  const Scored wrong = score({1000, 0}, 1);
  EXPECT_EQ(wrong.loss, 1000);
  EXPECT_EQ(wrong.gradient, (std::vector<float>{1, -1}));
  const Scored single = score({0.7}, 0);
  EXPECT_EQ(single.loss, 0);
  EXPECT_EQ(single.gradient, (std::vector<float>{0}));
}

TEST(CrossEntropy, IsThePlainDefinition) {
  Rng rng(1);
  const Tensor logits = rng.normal({2, 3, 5}, 0, 2, DType::float64);
  const Tensor targets = rng.integers({2, 3}, 0, 5);
  const std::vector<double> x = logits.to_vector<double>();
  const std::vector<int64_t> target = targets.to_vector<int64_t>();
  double total = 0;
  std::vector<double> each;
  for (size_t row = 0; row < 6; ++row) {
    double denominator = 0;
    for (size_t j = 0; j < 5; ++j) denominator += std::exp(x[row * 5 + j]);
    each.push_back(-std::log(std::exp(x[row * 5 + static_cast<size_t>(target[row])]) / denominator));
    total += each.back();
  }
  EXPECT_NEAR(cross_entropy(logits, targets).value().item(), total / 6, 1e-13);
  const Tensor positions = cross_entropy_per_position(logits, targets).value();
  EXPECT_TRUE(all_close(positions, Tensor::from(each, {2, 3}), 0, 1e-13));
}

TEST(CrossEntropy, ATimeMajorViewGivesTheSameLossAndGradient) {
  Rng rng(2);
  const Tensor logits = rng.normal({4, 3, 5}, 0, 1, DType::float64);
  const Tensor targets = rng.integers({4, 3}, 0, 5);
  const Variable plain = Variable::parameter(logits.transpose(0, 1).clone());
  const Variable turned = Variable::parameter(logits.transpose(0, 1));
  for (const Variable& x : {plain, turned}) {
    (cross_entropy(x, targets.transpose(0, 1)) + sum(square(cross_entropy_per_position(x, targets.transpose(0, 1)))))
        .backward();
  }
  EXPECT_TRUE(all_close(plain.grad(), turned.grad(), 0, 1e-15));
  // The gradient lies in memory as the logits do, so that the layers below need not turn it around.
  Variable alone = Variable::parameter(logits.transpose(0, 1));
  alone.add_hook([](const Tensor& gradient) {
    EXPECT_TRUE(gradient.transpose(0, 1).is_contiguous());
    return Tensor();
  });
  cross_entropy(alone, targets.transpose(0, 1)).backward();
}

TEST(CrossEntropy, IgnoredTargetsCountNothing) {
  Rng rng(3);
  const Variable x = Variable::parameter(rng.normal({4, 3}));
  const CrossEntropyOptions options{.ignore_index = -1};
  const Variable loss = cross_entropy(x, tokens({2, -1, 0, -1}, {4}), options);
  const Tensor counted = cross_entropy_per_position(x, tokens({2, 0, 0, 0}, {4})).value();
  EXPECT_FLOAT_EQ(loss.value().item<float>(),
                  (counted.select(0, 0).item<float>() + counted.select(0, 2).item<float>()) / 2);
  loss.backward();
  EXPECT_TRUE(identical(x.grad().select(0, 1), zeros({3})));
  EXPECT_TRUE(identical(x.grad().select(0, 3), zeros({3})));
  EXPECT_EQ(cross_entropy_per_position(x, tokens({2, -1, 0, -1}, {4}), options).value().select(0, 1).item(), 0);
}

TEST(CrossEntropy, NothingCountedIsZeroWithZeroGradient) {  // HD-12, micro-batch C
  const Variable x = Variable::parameter(ones({2, 3}));
  const Variable loss = cross_entropy(x, tokens({-1, -1}, {2}), {.ignore_index = -1});
  EXPECT_EQ(loss.value().item(), 0);
  loss.backward();
  EXPECT_TRUE(identical(x.grad(), zeros({2, 3})));
  EXPECT_EQ(cross_entropy(Variable(zeros({0, 3})), zeros({0}, DType::int64)).value().item(), 0);
}

TEST(CrossEntropy, UnequalMicroBatchesAddUpByTheirCounts) {  // HD-12
  Rng rng(4);
  const Tensor logits = rng.normal({110, 4}, 0, 1, DType::float64);
  const Tensor targets = rng.integers({110}, 0, 4);
  const Variable whole = Variable::parameter(logits);
  cross_entropy(whole, targets).backward();
  const Variable parts = Variable::parameter(logits);
  double loss = 0;
  for (const auto& [first, last] : {std::pair{0, 10}, std::pair{10, 110}}) {
    const Slice range{.start = first, .stop = last};
    const Variable sums = sum(cross_entropy_per_position(Variable(logits).detach(), targets).value().slice(0, range));
    loss += sums.value().item() / 110;
  }
  (sum(cross_entropy_per_position(parts, targets)) / 110.0).backward();
  EXPECT_NEAR(loss, cross_entropy(whole, targets).value().item(), 1e-13);
  EXPECT_TRUE(all_close(parts.grad(), whole.grad(), 0, 1e-15));
}

TEST(CrossEntropy, NanStaysNan) {
  const Variable x = Variable::parameter(Tensor::from({NAN, 1, 0, 1}, {2, 2}));
  const Variable loss = cross_entropy(x, tokens({1, 1}, {2}));
  EXPECT_TRUE(std::isnan(loss.value().item()));
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const Variable x = ones({2, 3});
  expect_error<IndexError>([&] { cross_entropy(x, tokens({0, 3}, {2})); }, {"[cross_entropy]", "[0, 3)", "got 3"});
  expect_error<IndexError>([&] { cross_entropy(x, tokens({0, -1}, {2})); }, {"got -1"});
  expect_error<ShapeError>([&] { cross_entropy(x, tokens({0, 1}, {2, 1})); }, {"[2, 1]", "[2, 3]"});
  expect_error<ValueError>([&] { cross_entropy(x, zeros({2})); }, {"int64", "float32"});
  expect_error<ValueError>(
      [&] {
        cross_entropy(Variable(zeros({2, 3}, DType::int64)), tokens({0, 1}, {2}));
      },
      {"[cross_entropy]", "int64"});
}

TEST(Mse, IsTheMeanAndNeverBroadcasts) {  // HD-08
  const Variable prediction = Variable::parameter(Tensor::from({1, 2, 4}, {3}));
  const Variable loss = mse(prediction, Variable(Tensor::from({1, 2, 3}, {3})));
  EXPECT_FLOAT_EQ(loss.value().item<float>(), 1.0F / 3);
  loss.backward();
  EXPECT_FLOAT_EQ(prediction.grad().select(0, 2).item<float>(), 2.0F / 3);
  expect_error<ShapeError>([] { mse(Variable(ones({3, 1})), Variable(ones({3}))); }, {"[mse]", "[3, 1]", "[3]"});
}

std::vector<float> normalised(std::initializer_list<double> row) {
  const auto size = static_cast<int64_t>(row.size());
  const Variable x = Variable::parameter(Tensor::from(row, {1, size}));
  const Variable y = layer_norm(x, Variable(ones({size})), Variable(zeros({size})));
  y.backward(arange(size).to(DType::float32).unsqueeze(0) + 1.0);
  EXPECT_TRUE(all_finite(x.grad()));
  return y.value().to_vector<float>();
}

TEST(LayerNorm, IsRightFarFromZero) {  // HD-05; the bars are the case's own
  const std::vector<float> b = normalised({10000, 10001, 10002, 10003, 10004, 10005, 10006, 10007});
  const std::vector<float> expected_b = {-1.527524F, -1.091088F, -0.654653F, -0.218218F};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(b[i], expected_b[i], 1e-3);
    EXPECT_NEAR(b[7 - i], -expected_b[i], 1e-3);
  }
  const std::vector<float> c = normalised({2000.25, 2000.75, 1999.5, 2001.5});
  const std::vector<float> expected_c = {-0.342994F, 0.342994F, -1.371976F, 1.371976F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(c[i], expected_c[i], 1e-3);
}

TEST(LayerNorm, AConstantRowWhoseSumRoundsGivesZeros) {  // HD-05
  const Variable weight = ones({768}), bias = zeros({768});
  for (const double value : {1234.1, 10000.1, 1e6 + 0.25, -0.3}) {
    const Tensor y = layer_norm(full({1, 768}, value), weight, bias).value();
    EXPECT_EQ(max(abs(y)).item(), 0) << value;
  }
}

TEST(LayerNorm, AConstantRowGivesZerosAndFiniteGradients) {  // HD-05
  const Variable x = Variable::parameter(full({1, 256}, 1234));
  const Variable y = layer_norm(x, Variable(ones({256})), Variable(zeros({256})));
  EXPECT_TRUE(identical(abs(y.value()), zeros({1, 256})));
  y.backward(arange(256).to(DType::float32).unsqueeze(0) + 1.0);
  EXPECT_TRUE(all_finite(x.grad()));
}

TEST(LayerNorm, GradientsPassTheCheckAlsoOfATurnedView) {
  Rng rng(5);
  const auto turned = [](Inputs in) { return layer_norm(transpose(in[0], 0, 1), in[1], in[2], 1e-3); };
  const auto normal = [&rng](const Shape& shape) { return rng.normal(shape, 0, 1, DType::float64); };
  const auto result = gradcheck(turned, {normal({3, 2, 4}), normal({4}), normal({4})});
  EXPECT_TRUE(result) << result.message;
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  expect_error<ShapeError>(
      [] {
        layer_norm(ones({2, 3}), Variable(ones({4})), Variable(zeros({4})));
      },
      {"[layer_norm]", "[4]", "[2, 3]"});
  expect_error<ValueError>(
      [] {
        layer_norm(ones({2, 3}), Variable(ones({3}, DType::float64)), Variable(zeros({3}, DType::float64)));
      },
      {"[layer_norm]", "float64", "float32"});
}

TEST(SequenceDropout, StepByStepEqualsTheWholeSequence) {
  Rng rng(6);
  const Tensor x = rng.normal({3, 7, 9});
  const Tensor whole = sequence_dropout(x, 0.4, 11).value();
  for (int64_t t = 0; t < 7; ++t) {
    const Tensor step = sequence_dropout(x.select(1, t), 0.4, 11, t).value();
    EXPECT_TRUE(identical(step.contiguous(), whole.select(1, t).contiguous())) << t;
  }
  const Tensor later = sequence_dropout(x.slice(1, {.start = 4}), 0.4, 11, 4).value();
  EXPECT_TRUE(identical(later.contiguous(), whole.slice(1, {.start = 4}).contiguous()));
}

TEST(SequenceDropout, DependsOnKeyAndKeepsTheMean) {
  const Tensor x = ones({10, 100, 20}, DType::float64);
  const Tensor a = sequence_dropout(x, 0.25, 1).value();
  const Tensor b = sequence_dropout(x, 0.25, 2).value();
  EXPECT_FALSE(identical(a.contiguous(), b.contiguous()));
  // Each kept value is 4/3; five standard errors of 20,000 draws: 5 sqrt(1/3 / 20000) = 0.02.
  EXPECT_NEAR(mean(a).item(), 1, 0.02);
  EXPECT_NEAR(max(a).item(), 4.0 / 3, 1e-15);
  EXPECT_TRUE(identical(sequence_dropout(x, 0, 1).value().contiguous(), x));
}

TEST(SequenceDropout, GradientGoesThroughTheSameMask) {
  const Variable x = Variable::parameter(ones({2, 5, 6}));
  const Variable y = sequence_dropout(x, 0.5, 3);
  sum(y).backward();
  EXPECT_TRUE(identical(x.grad().contiguous(), y.value().contiguous()));  // of ones: the mask itself
}

TEST(SequenceDropout, RefusesWhatMakesNoSense) {
  const Variable x = ones({2, 3});
  expect_error<ValueError>([&] { sequence_dropout(x, 1, 0); }, {"[dropout]", "[0, 1)", "got 1"});
  expect_error<ValueError>([&] { sequence_dropout(x, NAN, 0); }, {"nan"});
  expect_error<ShapeError>([] { sequence_dropout(ones({2}), 0.5, 0); }, {"[sequence_dropout]", "[2]"});
}

TEST(LayerNorm, EpsilonMustBePositive) {
  for (const double eps : {0.0, -1e-5, double{NAN}, double{INFINITY}}) {
    expect_error<ValueError>([&] { layer_norm(ones({2, 3}), ones({3}), zeros({3}), eps); }, {"[layer_norm]", "eps"});
  }
}

// Results that are cheap to make again, as functions of [R, D].
struct Cheap {
  const char* name;
  std::function<Variable(const Variable&)> of;
};
const std::vector<Cheap>& cheap_results() {
  static const std::vector<Cheap> all{
      {"gelu", [](const Variable& x) { return gelu(x); }},
      {"silu_gate", [](const Variable& x) { return silu_gate(x, x * 2.0); }},
      {"rms_norm", [](const Variable& x) { return rms_norm(x, linspace(1, 2, x.size(-1), x.dtype())); }},
      {"layer_norm",
       [](const Variable& x) {
         return layer_norm(x, linspace(1, 2, x.size(-1), x.dtype()), linspace(-1, 1, x.size(-1), x.dtype()));
       }},
      {"transposed gelu", [](const Variable& x) { return transpose(gelu(transpose(x, 0, 1)), 0, 1); }}};
  return all;
}

TEST(Linear, OfWhatIsCheapToMakeAgainHasTheSameGradientsToTheBit) {
  Rng rng(4);
  const Tensor numbers = rng.normal({30, 40}), cotangent = rng.normal({30, 20});
  for (const Cheap& cheap : cheap_results()) {
    SCOPED_TRACE(cheap.name);
    const auto gradients = [&numbers, &cotangent, &cheap](bool kept) {
      Rng weights(5);
      const Variable x = Variable::parameter(numbers), w = Variable::parameter(weights.normal({20, 40})),
                     b = Variable::parameter(weights.normal({20}));
      const Variable y = cheap.of(x);
      linear(kept ? reshape(y, y.shape()) : y, w, b).backward(cotangent);  // a view, which nothing makes again
      return std::vector<Tensor>{x.grad(), w.grad(), b.grad()};
    };
    const std::vector<Tensor> again = gradients(false), kept = gradients(true);
    for (size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(identical(again[i], kept[i])) << i;
  }
}

TEST(Linear, DoesNotKeepWhatIsCheapToMakeAgain) {
  const Variable x = Variable::parameter(ones({512, 512})), w = Variable::parameter(ones({1, 512}));
  for (const Cheap& cheap : cheap_results()) {
    const auto held = [&x, &w, &cheap](bool kept) {
      const uint64_t before = storage_stats().live_bytes;
      Variable y = cheap.of(x);
      const Variable z = linear(kept ? reshape(y, y.shape()) : y, w, {});
      y = {};
      return storage_stats().live_bytes - before;
    };
    EXPECT_EQ(held(false) + 512 * 512 * sizeof(float), held(true)) << cheap.name;
  }
}

TEST(Linear, RefusesToMakeAgainWhatWasMadeOfOtherNumbers) {
  const Variable x = Variable::parameter(ones({2, 3})), w = Variable::parameter(ones({1, 3}));
  const Variable gain = Variable::parameter(ones({3})), shift = Variable::parameter(ones({3}));
  const Variable y = sum(linear(layer_norm(x, gain, shift), w, {}));
  Tensor changed = shift.value();
  changed.fill_(2);
  expect_error<ValueError>([&] { y.backward(); }, {"[linear]", "changed in place"});
}

TEST(Mse, OfNothingIsZeroWithZeroGradient) {
  const Variable prediction = Variable::parameter(zeros({0, 3}));
  const Variable loss = mse(prediction, zeros({0, 3}));
  EXPECT_EQ(loss.value().item(), 0);
  loss.backward();
  EXPECT_EQ(prediction.grad().shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace carousel
