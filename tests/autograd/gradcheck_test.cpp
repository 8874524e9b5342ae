#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/record.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>

namespace carousel {
namespace {

// x^2 whose backward is off by the factor `error`.
GradcheckFunction crooked_square(double error) {
  return [error](std::span<const Variable> in) {
    const Tensor x = in[0].value();
    return record(Op::square, square(x), {in[0]},
                  [x, error](const Tensor& dy) { return Gradients{dy * x * (2 * error)}; });
  };
}

TEST(Gradcheck, PassesARightBackward) {
  EXPECT_TRUE(gradcheck(crooked_square(1), {linspace(1, 2, 5, DType::float64)}));
}

TEST(Gradcheck, FailsAnErrorOfOneInAHundred) {
  const GradcheckResult result = gradcheck(crooked_square(1.01), {linspace(1, 2, 5, DType::float64)});
  EXPECT_FALSE(result);
  EXPECT_EQ(result.message.substr(0, 29), "input 0, element 0: analytic ");
  EXPECT_GT(result.worst, 0.01);
}

TEST(Gradcheck, FailsANan) { EXPECT_FALSE(gradcheck(crooked_square(NAN), {linspace(1, 2, 5, DType::float64)})); }

TEST(Gradcheck, AMissingGradientCountsAsZero) {
  const GradcheckFunction cut = [](std::span<const Variable> in) { return square(in[0].detach()); };
  EXPECT_FALSE(gradcheck(cut, {linspace(1, 2, 3, DType::float64)}));
}

TEST(Gradcheck, RestoresItsInputs) {
  const Tensor x = linspace(1, 2, 5, DType::float64);
  const std::vector<double> before = x.to_vector<double>();
  gradcheck(crooked_square(1), {x});
  EXPECT_EQ(x.to_vector<double>(), before);
}

TEST(Gradcheck, RefusesFloat) {
  try {
    gradcheck(crooked_square(1), {ones({2})});
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "[gradcheck] inputs must be float64: got float32");
  }
}

}  // namespace
}  // namespace carousel
