#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/reduce.h>
#include <carousel/nn/decaying_memory.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>

#include "expect_error.h"

namespace carousel {
namespace {

TEST(DecayingMemory, ForgetsByLambdaAStepForwardAndBackward) {
  Rng rng(1);
  const DecayingMemory memory(1, 1, {.decay = 0.8}, rng, DType::float64);
  const Variable start = Variable::parameter(ones({1, 1}, DType::float64));
  const SequenceResult result = memory.forward(zeros({1, 20, 1}, DType::float64), {{"h", start}});
  EXPECT_NEAR(result.state["h"].value().item(), std::pow(0.8, 20), 1e-15);
  result.state["h"].backward();
  EXPECT_NEAR(start.grad().item(), std::pow(0.8, 20), 1e-15);
}

TEST(DecayingMemory, LearnsALambdaForEachChannel) {
  Rng rng(2);
  const DecayingMemory memory(3, 4, {.decay = 0.6, .learned = true}, rng, DType::float64);
  const Variable logit = memory.parameters()[1].variable;
  EXPECT_EQ(logit.shape(), (Shape{4}));
  EXPECT_FALSE(memory.parameters()[1].decay);
  const SequenceResult result = memory.forward(zeros({1, 1, 3}, DType::float64), {{"h", ones({1, 4}, DType::float64)}});
  for (double h : result.output.value().to_vector<double>()) EXPECT_NEAR(h, 0.6, 1e-15);
  sum(result.output).backward();
  for (double gradient : logit.grad().to_vector<double>()) EXPECT_NEAR(gradient, 0.6 * 0.4, 1e-15);
}

TEST(DecayingMemory, RefusesADecayThatGrows) {
  Rng rng(3);
  test::expect_error<ValueError>([&] { DecayingMemory(2, 2, {.decay = 1.1}, rng); }, {"decay", "1.1"});
  test::expect_error<ValueError>([&] { DecayingMemory(2, 2, {.decay = 1, .learned = true}, rng); },
                                 {"inside (0, 1): got 1"});
}

}  // namespace
}  // namespace carousel
