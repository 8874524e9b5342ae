#include "expect_error.h"
#include "leaky_layer.h"

#include <carousel/autograd/reduce.h>
#include <carousel/nn/rnn.h>
#include <carousel/nn/stack.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/reduce.h>

namespace carousel {
namespace {

using test::expect_error;

std::unique_ptr<Stack> make_stack(double dropout, int64_t layers = 3) {
  Rng rng(1);
  std::vector<std::unique_ptr<SequenceLayer>> made;
  for (int64_t i = 0; i < layers; ++i) {
    made.push_back(std::make_unique<Rnn>(i == 0 ? 3 : 4, 4, RnnConfig{}, rng, DType::float64));
  }
  return std::make_unique<Stack>(std::move(made), dropout);
}

Tensor input() {
  Rng rng(2);
  return rng.normal({2, 6, 3}, 0, 1, DType::float64);
}

TEST(Stack, NamesParametersAndStateByLayer) {
  const auto stack = make_stack(0, 2);
  EXPECT_EQ(stack->parameters()[0].name, "layers.0.weight_ih");
  EXPECT_EQ(stack->parameters()[7].name, "layers.1.bias_hh");
  const State state = stack->initial_state(5);
  EXPECT_EQ(state["0.h"].shape(), (Shape{5, 4}));
  EXPECT_EQ(state["1.h"].shape(), (Shape{5, 4}));
  EXPECT_EQ(stack->state_size(10), 8);
  EXPECT_EQ(stack->input_size(), 3);
  EXPECT_EQ(stack->output_size(), 4);
}

TEST(Stack, DropoutStepByStepEqualsTheWhole) {
  const auto stack = make_stack(0.5);
  const SequenceOptions options{.dropout_key = 7};
  const Tensor whole = stack->forward(input(), stack->initial_state(2), options).output.value();
  const Tensor unrolled = stack->unroll(input(), stack->initial_state(2), options).output.value();
  EXPECT_TRUE(all_close(whole, unrolled, 0, 1e-13));  // the fused kernel's rounding
  const Tensor other = stack->forward(input(), stack->initial_state(2), {.dropout_key = 8}).output.value();
  EXPECT_FALSE(all_close(whole, other, 0, 1e-3));
}

TEST(Stack, DropsNothingWithoutAKeyInEvaluationOrAboveTheLastLayer) {
  const auto stack = make_stack(0.5);
  const Tensor plain = make_stack(0)->forward(input(), stack->initial_state(2)).output.value();
  EXPECT_TRUE(identical(stack->forward(input(), stack->initial_state(2)).output.value(), plain));
  stack->eval();
  EXPECT_TRUE(identical(stack->forward(input(), stack->initial_state(2), {.dropout_key = 7}).output.value(), plain));
  const auto single = make_stack(0.5, 1);
  EXPECT_TRUE(identical(single->forward(input(), single->initial_state(2), {.dropout_key = 7}).output.value(),
                        single->forward(input(), single->initial_state(2)).output.value()));
}

TEST(Stack, EveryLayerHasAMaskOfItsOwn) {
  Rng rng(3);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  for (int i = 0; i < 3; ++i) {  // h <- W x with W = I: what comes out shows both masks
    auto layer = std::make_unique<test::LeakyLayer>(64, 64, 0, rng);
    Tensor weight = layer->parameters()[1].variable.value();
    weight.copy_(eye(64, DType::float64));
    layers.push_back(std::move(layer));
  }
  const Stack stack(std::move(layers), 0.5);
  const Tensor y =
      stack.forward(ones({4, 8, 64}, DType::float64), stack.initial_state(4), {.dropout_key = 1}).output.value();
  // Two independent masks keep a quarter; one and the same would keep half. 2048 draws: five standard errors are 0.05.
  EXPECT_NEAR(sum(greater(y, 0).to(DType::float64)).item() / 2048, 0.25, 0.05);
}

TEST(Stack, VisitorHearsEveryLayerByItsPath) {
  const auto stack = make_stack(0);
  std::vector<std::string> heard;
  const auto visitor = [&](const BackwardView& view) { heard.push_back(view.layer); };
  sum(stack->forward(input(), stack->initial_state(2), {.visitor = visitor}).output).backward();
  EXPECT_EQ(heard, (std::vector<std::string>{"layers.2", "layers.1", "layers.0"}));
}

TEST(Stack, RefusesLayersThatDoNotFit) {
  Rng rng(4);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  expect_error<ValueError>([] { Stack({}, 0); }, {"[Stack]", "none"});
  layers.push_back(std::make_unique<Rnn>(3, 4, RnnConfig{}, rng));
  layers.push_back(std::make_unique<Rnn>(5, 4, RnnConfig{}, rng));
  expect_error<ShapeError>([&] { Stack(std::move(layers), 0); }, {"layer 1", "5 and 4"});
  expect_error<ValueError>([] { make_stack(1.0); }, {"dropout", "[0, 1)"});
}

}  // namespace
}  // namespace carousel
