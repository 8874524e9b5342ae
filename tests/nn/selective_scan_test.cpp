#include <carousel/nn/selective_scan.h>

#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

#include <cmath>
#include <map>

namespace carousel {
namespace {

constexpr int64_t batch = 2, steps = 40, channels = 3, states = 2;

// Tolerances, where no other reason stands beside them: in double a rounding is 1e-16 of a number near 1. What a
// visitor sees is what went in, or one exp of it (1e-14); outputs and gradients are sums of some 80 numbers that are
// added in two orders (1e-12).

struct Trial {
  ScanTerms terms;
  Variable h0;

  std::vector<Variable> all() const { return {terms.u, terms.dt, terms.a, terms.b, terms.c, terms.d, h0}; }
};

Trial make_trial(bool fixed = false) {
  Rng rng(1);
  const auto leaf = [&rng](const Shape& shape, double low, double high) {
    return Variable::parameter(rng.uniform(shape, low, high, DType::float64));
  };
  const Shape coefficients = fixed ? Shape{channels, states} : Shape{batch, steps, states};
  return {.terms = {.u = leaf({batch, steps, channels}, -1, 1),
                    .dt = leaf({batch, steps, channels}, 0, 1),
                    .a = leaf({channels, states}, -2, 0),
                    .b = leaf(coefficients, -1, 1),
                    .c = leaf(coefficients, -1, 1),
                    .d = leaf({channels}, -1, 1)},
          .h0 = leaf({batch, channels, states}, -1, 1)};
}

std::vector<Tensor> gradients(const Trial& trial, const BackwardVisitor& visitor) {
  const ScanResult result = selective_scan(trial.terms, trial.h0, {.visitor = visitor, .path = "layers.1"});
  (sum(square(result.output)) + sum(result.state)).backward();
  std::vector<Tensor> all;
  for (const Variable& variable : trial.all()) all.push_back(variable.grad());
  return all;
}

TEST(SelectiveScan, OneStepWithoutInputIsTheDecay) {
  Trial trial = make_trial();
  trial.terms = {.u = zeros({1, 1, 1}),
                 .dt = full({1, 1, 1}, 0.5),
                 .a = full({1, 1}, -3),
                 .b = ones({1, 1, 1}),
                 .c = full({1, 1, 1}, 10),
                 .d = ones({1})};
  const ScanResult result = selective_scan(trial.terms, full({1, 1, 1}, 2));
  const double expected = 2 * std::exp(-1.5);
  EXPECT_NEAR(result.state.value().item(), expected, 1e-6);  // some roundings in float
  EXPECT_NEAR(result.output.value().item(), 10 * expected, 1e-5);
}

// Algorithm 1 of the paper with B and C that vary is Algorithm 2: fixed coefficients, repeated for one channel, give
// the same numbers and the summed gradients.
TEST(SelectiveScan, FixedCoefficientsAreTheSameAtAllSteps) {
  const Trial fixed = make_trial(true);
  const std::vector<Tensor> of_fixed = gradients(fixed, {});
  const Tensor y = selective_scan(fixed.terms, fixed.h0).output.value();
  for (int64_t i = 0; i < channels; ++i) {
    const Slice only{.start = i, .stop = i + 1};
    const auto leaf = [](const Tensor& x) { return Variable::parameter(x.contiguous().clone()); };
    const Tensor b = fixed.terms.b.value().slice(0, only), c = fixed.terms.c.value().slice(0, only);
    const Trial one{.terms = {.u = leaf(fixed.terms.u.value().slice(2, only)),
                              .dt = leaf(fixed.terms.dt.value().slice(2, only)),
                              .a = leaf(fixed.terms.a.value().slice(0, only)),
                              .b = leaf(b.expand({batch, steps, states})),
                              .c = leaf(c.expand({batch, steps, states})),
                              .d = leaf(fixed.terms.d.value().slice(0, only))},
                    .h0 = leaf(fixed.h0.value().slice(1, only))};
    const std::vector<Tensor> of_one = gradients(one, {});
    const auto expect = [](const Tensor& a, const Tensor& expected) {
      EXPECT_TRUE(all_close(a, expected, 1e-12, 1e-12));
    };
    expect(y.slice(2, only), selective_scan(one.terms, one.h0).output.value());
    expect(of_fixed[0].slice(2, only), of_one[0]);
    expect(of_fixed[2].slice(0, only), of_one[2]);
    expect(of_fixed[3].select(0, i), sum(of_one[3], {0, 1}));
    expect(of_fixed[4].select(0, i), sum(of_one[4], {0, 1}));
    expect(of_fixed[6].slice(1, only), of_one[6]);
  }
}

TEST(SelectiveScan, AVisitorSeesWhatItIsMadeOf) {
  for (const bool fixed : {false, true}) {
    const Trial trial = make_trial(fixed);
    std::map<std::string, Tensor> seen;
    int64_t next_end = steps;
    const auto visitor = [&](const BackwardView& view) {
      EXPECT_EQ(view.layer, "layers.1");
      auto all = view.saved;
      all.insert(all.end(), view.gradient.begin(), view.gradient.end());
      for (const auto& [name, value] : all) {
        Shape whole = value.shape();
        whole[0] = steps;
        if (!seen.contains(name)) seen[name] = full(whole, NAN, DType::float64);
        seen[name].slice(0, {.start = view.first_step, .stop = next_end}).copy_(value);
      }
      next_end = view.first_step;
    };
    const std::vector<Tensor> looked = gradients(trial, visitor);
    EXPECT_EQ(next_end, 0);
    const auto expect = [&seen](const std::string& name, const Tensor& expected) {
      ASSERT_TRUE(seen.contains(name)) << name;
      EXPECT_TRUE(all_close(seen[name], expected, 1e-14, 1e-14)) << name;
    };
    const auto time_first = [](const Variable& x) { return x.value().transpose(0, 1); };
    expect("u", time_first(trial.terms.u));
    expect("dt", time_first(trial.terms.dt));
    expect("decay", exp(time_first(trial.terms.dt).unsqueeze(-1) * trial.terms.a.value()));
    const Shape everywhere{steps, batch, channels, states};
    expect("B", fixed ? trial.terms.b.value().expand(everywhere) : time_first(trial.terms.b));
    expect("C", fixed ? trial.terms.c.value().expand(everywhere) : time_first(trial.terms.c));
    EXPECT_EQ(seen.at("h").shape(), everywhere);

    const std::vector<Tensor> plain = gradients(make_trial(fixed), {});
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(all_close(looked[i], plain[i], 1e-12, 1e-12)) << i;  // sums of 80 numbers, in another order
    }
  }
}

TEST(SelectiveScan, BackwardRefusesATermChangedInPlace) {
  const Trial trial = make_trial();
  const Variable loss = sum(selective_scan(trial.terms, trial.h0).output);
  Tensor a = trial.terms.a.value();
  mul_(a, 2.0);
  EXPECT_THROW(loss.backward(), ValueError);
}

TEST(SelectiveScan, NamesWhatDoesNotFit) {
  const auto expect = [](auto change, std::initializer_list<const char*> parts) {
    Trial trial = make_trial();
    change(trial);
    test::expect_error<ShapeError>([&trial] { selective_scan(trial.terms, trial.h0); }, parts);
  };
  const auto tensor = [](const Shape& shape) { return zeros(shape, DType::float64); };
  expect([&](Trial& t) { t.terms.u = tensor({2, 5}); }, {"[selective_scan]", "[B, T, I]", "[2, 5]"});
  expect([&](Trial& t) { t.terms.dt = tensor({2, 5, 3}); }, {"dt", "[2, 40, 3]", "[2, 5, 3]"});
  expect([&](Trial& t) { t.terms.a = tensor({2, 2}); }, {"A", "I = 3", "[2, 2]"});
  expect([&](Trial& t) { t.terms.b = tensor({2, 40, 3}); }, {"B", "[2, 40, 2]", "[2, 40, 3]"});
  expect([&](Trial& t) { t.terms.c = tensor({3, 2}); }, {"C", "[2, 40, 2]", "[3, 2]"});
  expect([&](Trial& t) { t.terms.d = tensor({2}); }, {"D", "[3]", "[2]"});
  expect([&](Trial& t) { t.h0 = tensor({2, 3, 3}); }, {"h0", "[2, 3, 2]", "[2, 3, 3]"});
  Trial mixed = make_trial();
  mixed.terms.d = zeros({3});
  test::expect_error<ValueError>([&mixed] { selective_scan(mixed.terms, mixed.h0); }, {"float64", "float32"});
}

}  // namespace
}  // namespace carousel
