#include "../nn/expect_error.h"

#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>
#include <carousel/optim/sgd.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

using test::expect_error;

std::vector<NamedParameter> with_gradients(const std::vector<Tensor>& gradients) {
  std::vector<NamedParameter> parameters;
  for (const Tensor& gradient : gradients) {
    NamedParameter parameter{"p" + std::to_string(parameters.size()),
                             Variable::parameter(ones(gradient.shape(), gradient.dtype()))};
    parameter.variable.set_grad(gradient);
    parameters.push_back(parameter);
  }
  return parameters;
}

TEST(ClipGradNorm, ScalesAllGradientsTogether) {
  const auto parameters =
      with_gradients({Tensor::from({3, 0}, {2}, DType::float64), Tensor::from({4}, {1}, DType::float64)});
  EXPECT_DOUBLE_EQ(clip_grad_norm(parameters, 1), 5);
  EXPECT_NEAR(parameters[0].variable.grad().select(0, 0).item(), 3 / (5 + 1e-6), 1e-15);
  EXPECT_NEAR(parameters[1].variable.grad().item(), 4 / (5 + 1e-6), 1e-15);
  EXPECT_LE(grad_norm(parameters), 1);
}

TEST(ClipGradNorm, LeavesSmallGradientsAsTheyAre) {
  const auto parameters = with_gradients({Tensor::from({0.3F, 0.4F}, {2})});
  const Tensor before = parameters[0].variable.grad().clone();
  EXPECT_FLOAT_EQ(static_cast<float>(clip_grad_norm(parameters, 1)), 0.5F);
  EXPECT_TRUE(identical(parameters[0].variable.grad(), before));
}

TEST(ClipGradNorm, HugeGradientsDoNotOverflow) {  // HD-04 (a)
  const auto parameters = with_gradients(std::vector<Tensor>(100, full({1}, 1e20)));
  EXPECT_NEAR(clip_grad_norm(parameters, 1), 1e21, 1e15);  // 1e20 in float has seven digits
  for (const NamedParameter& parameter : parameters) EXPECT_NEAR(parameter.variable.grad().item(), 0.1, 1e-7);
}

TEST(ClipGradNorm, InTheStepItIsTheSameForHugeGradientsAndForThoseThatAreNotFinite) {  // HD-04
  const auto parameters = with_gradients(std::vector<Tensor>(100, full({1}, 1e20)));
  Sgd optimizer(parameters, {});
  EXPECT_NEAR(optimizer.step(1, {.clip_norm = 1}), 1e21, 1e15);
  for (const NamedParameter& parameter : parameters) EXPECT_NEAR(parameter.variable.value().item(), 0.9, 1e-6);
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    std::vector<Tensor> before;
    for (const NamedParameter& parameter : parameters) before.push_back(parameter.variable.value().clone());
    Variable(parameters[37].variable).set_grad(full({1}, bad));
    expect_error<ValueError>([&] { optimizer.step(1, {.clip_norm = 1}); }, {"finite", "'p37'"});
    for (size_t i = 0; i < 100; ++i) EXPECT_TRUE(identical(parameters[i].variable.value(), before[i])) << i;
  }
}

TEST(ClipGradNorm, DoublesWhoseSquaresOverflowAreClippedToo) {
  const auto parameters = with_gradients(std::vector<Tensor>(4, full({1}, 1e200, DType::float64)));
  EXPECT_DOUBLE_EQ(clip_grad_norm(parameters, 1), 2e200);
  for (const NamedParameter& parameter : parameters) EXPECT_DOUBLE_EQ(parameter.variable.grad().item(), 0.5);
}

TEST(ClipGradNorm, ANormThatIsNotFiniteTouchesNothingAndTheStepIsRefused) {  // HD-04 (b), (c)
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    std::vector<Tensor> gradients(3, full({1}, 1e20));
    gradients[1] = full({1}, bad);
    const auto parameters = with_gradients(gradients);
    EXPECT_FALSE(std::isfinite(clip_grad_norm(parameters, 1)));
    EXPECT_EQ(parameters[0].variable.grad().item<float>(), 1e20F);
    Adam optimizer(parameters, {});
    expect_error<ValueError>([&] { optimizer.step(1e-3); }, {"finite", "'p1'"});
    for (const NamedParameter& parameter : parameters) EXPECT_EQ(parameter.variable.value().item(), 1);
  }
}

TEST(ClipGradNorm, MakesNoNewTensors) {
  NamedParameter parameter{"p", Variable::parameter(ones({1000}))};
  parameter.variable.set_grad(full({1000}, 2));
  const void* const before = parameter.variable.grad().storage().get();
  clip_grad_norm({parameter}, 1);
  EXPECT_EQ(parameter.variable.grad().storage().get(), before);
  EXPECT_LE(grad_norm({parameter}), 1);
}

TEST(ClipGradNorm, LeavesATensorThatSomebodyElseHoldsAlone) {
  const Tensor held = full({4}, 2);
  const auto parameters = with_gradients({held});
  clip_grad_norm(parameters, 1);
  EXPECT_EQ(held.select(0, 0).item(), 2);
  EXPECT_LE(grad_norm(parameters), 1);
}

TEST(ClipGradValue, ClampsEveryElement) {
  const auto parameters = with_gradients({Tensor::from({-7, 0.5, 7}, {3})});
  clip_grad_value(parameters, 5);
  EXPECT_EQ(parameters[0].variable.grad().to_vector<float>(), (std::vector<float>{-5, 0.5, 5}));
}

TEST(ClipGradValue, LeavesWhatIsNotFiniteSoThatTheStepIsRefused) {  // HD-04, by value
  for (const double bad : {double{INFINITY}, double{NAN}}) {
    const auto parameters = with_gradients({Tensor::from({7, 7}, {2}), Tensor::from({7, bad}, {2})});
    clip_grad_value(parameters, 5);
    Sgd optimizer(parameters, {});
    expect_error<ValueError>([&] { optimizer.step(1e-3); }, {"finite", "'p1'"});
    EXPECT_TRUE(identical(parameters[0].variable.value(), ones({2})));
  }
}

TEST(Clip, SkipsParametersWithoutGradientAndRefusesSillyLimits) {
  const std::vector<NamedParameter> none = {{"p", Variable::parameter(ones({1}))}};
  EXPECT_EQ(clip_grad_norm(none, 1), 0);
  clip_grad_value(none, 1);
  EXPECT_FALSE(none[0].variable.grad().defined());
  expect_error<ValueError>([&] { clip_grad_norm(none, 0); }, {"[clip_grad_norm]", "limit", "0"});
  expect_error<ValueError>([&] { clip_grad_value(none, NAN); }, {"[clip_grad_value]", "nan"});
}

}  // namespace
}  // namespace carousel
