#include "../nn/expect_error.h"

#include <carousel/optim/adagrad.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/make_optimizer.h>
#include <carousel/optim/rmsprop.h>
#include <carousel/optim/sgd.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

// What holds for every optimiser that there is a name for.
class EveryOptimizer : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Optimizer> make(const std::vector<NamedParameter>& parameters) const {
    return make_optimizer(GetParam(), parameters, {.weight_decay = 0.1, .momentum = 0.9});
  }
};

NamedParameter weight(const std::string& name = "w") { return {name, Variable::parameter(ones({3, 5}))}; }

void follow(Optimizer& optimizer, NamedParameter& parameter, Rng& rng, int steps) {
  for (int i = 0; i < steps; ++i) {
    parameter.variable.set_grad(rng.normal({3, 5}));
    optimizer.step(0.01, {.clip_norm = 2});
  }
}

TEST_P(EveryOptimizer, ResumesBitForBit) {
  Rng rng(1), again(1);
  NamedParameter straight = weight(), before = weight();
  const auto whole = make({straight}), first = make({before});
  follow(*whole, straight, rng, 10);
  follow(*first, before, again, 4);
  NamedParameter after{"w", Variable::parameter(before.variable.value().clone())};
  const auto second = make({after});
  auto state = second->state();
  const auto saved = first->state();
  ASSERT_EQ(state.size(), saved.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].first, saved[i].first);
    state[i].second.copy_(saved[i].second);
  }
  follow(*second, after, again, 6);
  EXPECT_TRUE(identical(after.variable.value(), straight.variable.value()));
}

TEST_P(EveryOptimizer, AGradientThatIsNotFiniteIsRefusedAndNothingChanges) {  // HD-04
  NamedParameter first = weight("first"), second = weight("second");
  const auto optimizer = make({first, second});
  Rng rng(2);
  follow(*optimizer, first, rng, 2);
  const Tensor value = first.variable.value().clone();
  std::vector<Tensor> before;
  for (const auto& [name, tensor] : optimizer->state()) before.push_back(tensor.clone());
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    second.variable.set_grad(full({3, 5}, bad));
    expect_error<ValueError>([&] { optimizer->step(0.1); }, {"[Optimizer]", "finite", "'second'"});
    EXPECT_TRUE(identical(first.variable.value(), value));
    EXPECT_TRUE(identical(second.variable.value(), ones({3, 5})));
    const auto state = optimizer->state();
    for (size_t i = 0; i < state.size(); ++i) EXPECT_TRUE(identical(state[i].second, before[i])) << state[i].first;
  }
}

TEST_P(EveryOptimizer, AParameterWithoutGradientStaysAndStartsAfreshWhenOneComes) {
  NamedParameter early = weight("early"), late = weight("late"), alone = weight("alone");
  const auto together = make({early, late}), by_itself = make({alone});
  Rng rng(3), again(4), once_more(4);
  follow(*together, early, rng, 5);
  EXPECT_TRUE(identical(late.variable.value(), ones({3, 5})));
  together->zero_grad();
  EXPECT_FALSE(early.variable.grad().defined());
  follow(*together, late, again, 3);
  follow(*by_itself, alone, once_more, 3);
  EXPECT_TRUE(identical(late.variable.value(), alone.variable.value()));
}

INSTANTIATE_TEST_SUITE_P(Names, EveryOptimizer, testing::ValuesIn(optimizer_names()),
                         [](const auto& name) { return name.param; });

template <class Kind>
bool makes(std::string_view name) {
  return dynamic_cast<Kind*>(make_optimizer(name, {weight()}).get()) != nullptr;
}

TEST(MakeOptimizer, GivesTheOneOfThatName) {
  EXPECT_EQ(optimizer_names(), (std::vector<std::string>{"adamw", "adam", "sgd", "rmsprop", "adagrad"}));
  EXPECT_TRUE(makes<AdamW>("adamw"));
  EXPECT_TRUE(makes<Adam>("adam"));
  EXPECT_FALSE(makes<AdamW>("adam"));
  EXPECT_TRUE(makes<Sgd>("sgd"));
  EXPECT_TRUE(makes<Rmsprop>("rmsprop"));
  EXPECT_TRUE(makes<Adagrad>("adagrad"));
}

TEST(MakeOptimizer, AnUnknownNameListsThoseThatThereAre) {
  expect_error<ValueError>([] { make_optimizer("rmsprob", {weight()}); },
                           {"[make_optimizer]", "'rmsprob'", "adamw, adam, sgd, rmsprop, adagrad", "'rmsprop'"});
  expect_error<ValueError>([] { make_optimizer("sgd", {weight()}, {.nesterov = true}); }, {"[Sgd]", "nesterov"});
  expect_error<ValueError>([] { make_optimizer("adagrad", {weight()}, {.eps = -1}); }, {"[Adagrad]", "eps", "-1"});
}

}  // namespace
}  // namespace carousel
