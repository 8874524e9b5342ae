#include <carousel/nn/causal_conv.h>

#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/random.h>

namespace carousel {
namespace {

struct Terms {
  Variable x, window, weight, bias;
};

// B = 2, I = 3, W = 4.
Terms make_terms(int64_t steps) {
  Rng rng(1);
  const auto leaf = [&rng](const Shape& shape) { return Variable::parameter(rng.normal(shape, 0, 1, DType::float64)); };
  return {.x = leaf({2, steps, 3}), .window = leaf({2, 3, 3}), .weight = leaf({3, 4}), .bias = leaf({3})};
}

CausalConvResult run(const Terms& terms, const SequenceOptions& options = {}) {
  return causal_conv(terms.x, terms.window, terms.weight, terms.bias, options);
}

TEST(CausalConv, AShortSequenceKeepsWhatIsLeftOfTheWindow) {
  for (const int64_t steps : {0, 1, 2, 3, 5}) {
    const Terms terms = make_terms(steps);
    const std::vector<Tensor> all{terms.window.value(), terms.x.value().transpose(1, 2)};
    const Tensor expected = concatenate(all, 2).slice(2, {.start = steps});
    EXPECT_TRUE(identical(run(terms).window.value(), expected.contiguous())) << steps;
  }
}

TEST(CausalConv, AResetMakesThePastZeros) {
  const Terms terms = make_terms(5);
  Tensor reset = zeros({2, 5}, DType::boolean);
  reset.select(1, 3).fill_(1);
  const CausalConvResult result = run(terms, {.reset = reset});
  Terms fresh = terms;
  fresh.x = terms.x.value().slice(1, {.start = 3});
  fresh.window = zeros({2, 3, 3}, DType::float64);
  const CausalConvResult alone = run(fresh);
  EXPECT_TRUE(identical(result.output.value().slice(1, {.start = 3}).contiguous(), alone.output.value().contiguous()));
  EXPECT_TRUE(identical(result.window.value(), alone.window.value()));
}

TEST(CausalConv, AVisitorSeesTheWindowAfterEachStep) {
  const Terms terms = make_terms(40);
  Tensor seen = zeros({40, 2, 3, 3}, DType::float64);
  int64_t next_end = 40;
  const auto visitor = [&](const BackwardView& view) {
    ASSERT_EQ(view.layer, "layers.1");
    ASSERT_EQ(view.saved.at(0).first, "conv");
    const Slice block{.start = view.first_step, .stop = next_end};
    seen.slice(0, block).copy_(view.saved.at(0).second);
    next_end = view.first_step;
  };
  sum(run(terms, {.visitor = visitor, .path = "layers.1"}).output).backward();
  EXPECT_EQ(next_end, 0);
  for (const int64_t t : {0, 2, 31, 32, 39}) {
    Terms until = terms;
    until.x = terms.x.value().slice(1, {.stop = t + 1});
    EXPECT_TRUE(identical(seen.select(0, t).contiguous(), run(until).window.value())) << t;
  }
}

TEST(CausalConv, LookingChangesNoGradient) {
  const auto gradients = [](const BackwardVisitor& visitor) {
    const Terms terms = make_terms(40);
    const CausalConvResult result = run(terms, {.visitor = visitor});
    (sum(result.output) + sum(result.window)).backward();
    return std::vector<Tensor>{terms.x.grad(), terms.window.grad(), terms.weight.grad(), terms.bias.grad()};
  };
  const std::vector<Tensor> looked = gradients([](const BackwardView&) {}), plain = gradients({});
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(all_close(looked[i], plain[i], 1e-13, 1e-13)) << i;  // sums of 80 numbers, in another order
  }
}

TEST(CausalConv, NamesWhatDoesNotFit) {
  const Terms good = make_terms(5);
  const auto expect = [&good](auto change, std::initializer_list<const char*> parts) {
    Terms terms = good;
    change(terms);
    test::expect_error<ShapeError>([&terms] { run(terms); }, parts);
  };
  const auto tensor = [](const Shape& shape) { return zeros(shape, DType::float64); };
  expect([&](Terms& t) { t.x = tensor({2, 5}); }, {"[causal_conv]", "[B, T, I]", "[2, 5]"});
  expect([&](Terms& t) { t.window = tensor({2, 3, 4}); }, {"window", "[2, 3, 3]", "[2, 3, 4]"});
  expect([&](Terms& t) { t.weight = tensor({4, 4}); }, {"weight", "I = 3", "[4, 4]"});
  expect([&](Terms& t) { t.bias = tensor({4}); }, {"bias", "[3]", "[4]"});
  Terms mixed = good;
  mixed.bias = zeros({3});
  test::expect_error<ValueError>([&mixed] { run(mixed); }, {"float64", "float32"});
  test::expect_error<ShapeError>(
      [&good] {
        run(good, {.reset = zeros({2, 4}, DType::boolean)});
      },
      {"reset", "[2, 5]", "[2, 4]"});
}

}  // namespace
}  // namespace carousel
