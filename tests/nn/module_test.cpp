#include "expect_error.h"

#include <carousel/nn/module.h>
#include <carousel/tensor/factory.h>

namespace carousel {
namespace {

class Part : public Module {
 public:
  Part() {
    add_parameter("weight", ones({2, 3}), Decay::yes);
    add_parameter("bias", ones({3}), Decay::no);
    add_buffer("steps", zeros({1}, DType::int64));
  }
  void add(std::string name) { add_parameter(std::move(name), ones({1}), Decay::no); }
};

class Whole : public Module {
 public:
  Whole() {
    add_child("first", first);
    add_child("second", second);
    scale = add_parameter("scale", ones({}), Decay::no);
  }
  Part first, second;
  Variable scale;
};

std::vector<std::string> names(const Module& module) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : module.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(Module, NamesArePathsOwnParametersFirst) {
  const Whole whole;
  EXPECT_EQ(names(whole),
            (std::vector<std::string>{"scale", "first.weight", "first.bias", "second.weight", "second.bias"}));
  EXPECT_EQ(whole.parameter_count(), 1 + 2 * (6 + 3));
  ASSERT_EQ(whole.buffers().size(), 2U);
  EXPECT_EQ(whole.buffers()[1].name, "second.steps");
}

TEST(Module, RemembersWhatDecays) {
  for (const NamedParameter& parameter : Whole().parameters()) {
    EXPECT_EQ(parameter.decay, parameter.name.find("weight") != std::string::npos) << parameter.name;
  }
}

TEST(Module, ModeReachesEveryChild) {
  Whole whole;
  EXPECT_TRUE(whole.second.training());
  whole.eval();
  EXPECT_FALSE(whole.training() || whole.first.training() || whole.second.training());
  whole.train();
  EXPECT_TRUE(whole.training() && whole.first.training() && whole.second.training());
}

TEST(Module, ZeroGradClearsEveryGradient) {
  Whole whole;
  for (NamedParameter& parameter : whole.parameters()) parameter.variable.set_grad(ones(parameter.variable.shape()));
  EXPECT_TRUE(whole.scale.grad().defined());
  whole.zero_grad();
  for (const NamedParameter& parameter : whole.parameters()) {
    EXPECT_FALSE(parameter.variable.grad().defined()) << parameter.name;
  }
}

TEST(Module, RefusesNamesThatAreTakenOrHoldADot) {
  Part part;
  test::expect_error<ValueError>([&] { part.add("weight"); }, {"[Module]", "once", "'weight'"});
  test::expect_error<ValueError>([&] { part.add("steps"); }, {"'steps'"});
  test::expect_error<ValueError>([&] { part.add("a.b"); }, {"dot", "'a.b'"});
  test::expect_error<ValueError>([&] { part.add(""); }, {"empty"});
}

}  // namespace
}  // namespace carousel
