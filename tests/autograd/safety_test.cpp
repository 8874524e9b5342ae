#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/index.h>
#include <carousel/autograd/matmul.h>
#include <carousel/autograd/record.h>
#include <carousel/autograd/reduce.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace carousel {
namespace {

using testing::HasSubstr;

// The text of the error of type E that `body` throws.
template <class E, class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

Variable parameter() { return Variable::parameter(Tensor::from({1, 2, 3}, {3})); }

TEST(Safety, ASecondBackwardThroughAFreedGraph) {
  const Variable x = parameter();
  const Variable y = sum(exp(x));
  y.backward();
  const std::string text = error_of<ValueError>([&] { y.backward(); });
  EXPECT_EQ(text,
            "[backward] the graph behind sum was freed by an earlier backward: pass retain_graph, or detach() a state "
            "that is carried from one window to the next");
}

TEST(Safety, AStateCarriedWithoutDetach) {  // HD-11
  const Variable w = Variable::parameter(Tensor::scalar(0.5));
  Variable h = Tensor::scalar(1);
  h = tanh(w * h);
  h.backward();
  const double before = w.grad().item();
  h = tanh(w * h);
  EXPECT_THAT(error_of<ValueError>([&] { h.backward(); }), HasSubstr("detach()"));
  EXPECT_EQ(w.grad().item(), before) << "a failed backward must not leave half a gradient";
}

TEST(Safety, AnInPlaceChangeOfASavedValue) {
  Tensor value = Tensor::from({1, 2, 3}, {3});
  const Variable x = Variable::parameter(value);
  const Variable y = sum(square(x));
  add_(value, 1);
  EXPECT_EQ(error_of<ValueError>([&] { y.backward(); }),
            "[square] a value saved for backward was changed in place since: shape [3], version " +
                std::to_string(value.version() - 1) + " then, " + std::to_string(value.version()) + " now");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Safety, AnInPlaceChangeThatNobodySavedIsFine) {
  Tensor value = Tensor::from({1, 2, 3}, {3});
  const Variable x = Variable::parameter(value);
  const Variable y = sum(x * 2.0);
  add_(value, 1);
  y.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

TEST(Safety, SecondDerivativesAreRefused) {
  const Variable x = parameter();
  const Variable y = sum(square(x));
  EXPECT_EQ(error_of<ValueError>([&] { grad(y, std::span(&x, 1), {}, {.create_graph = true}); }),
            "[grad] second derivatives are not supported: gradients are of first order and have no history");
  y.backward();
  EXPECT_THAT(error_of<ValueError>([&] { sum(Variable(x.grad())).backward(); }), HasSubstr("of first order"));
}

TEST(Safety, OnlyAScalarMayGoWithoutCotangent) {
  EXPECT_EQ(error_of<ShapeError>([] { exp(parameter()).backward(); }),
            "[backward] without a cotangent the variable must be a scalar: got shape [3]");
  EXPECT_THAT(error_of<ShapeError>([] { exp(parameter()).backward(ones({2})); }), HasSubstr("got [2] and [3]"));
  EXPECT_THAT(error_of<ValueError>([] { exp(parameter()).backward(ones({3}, DType::float64)); }),
              HasSubstr("got float64 and float32"));
}

TEST(Safety, IntegersHaveNoGradient) {
  EXPECT_EQ(error_of<ValueError>([] { Variable::parameter(arange(3)); }),
            "[parameter] only float32 and float64 values can require a gradient: got int64");
}

TEST(Safety, AnOperationWithAWrongBackwardIsCaught) {
  const Variable x = parameter();
  const auto wrong = [&](const Gradients& gradients) {
    return record(Op::exp, exp(x.value()), {x}, [gradients](const Tensor&) { return gradients; });
  };
  EXPECT_EQ(error_of<ShapeError>([&] { sum(wrong({ones({4})})).backward(); }),
            "[exp] a gradient must have the shape of its value: got [4] and [3]");
  EXPECT_EQ(error_of<ValueError>([&] { sum(wrong({})).backward(); }),
            "[exp] backward must give one gradient per input: got 0 for 1");
}

TEST(Safety, AGradientThatIsToBeAddedMustFitToo) {
  const Variable x = parameter();
  const auto wrong = [&](const Shape& shape, DType dtype) {
    return record(Op::exp, exp(x.value()), {x}, [shape, dtype](const Tensor&) {
      return Gradients{{shape, dtype, [](Tensor& sum) { add_(sum, 1); }}};
    });
  };
  EXPECT_EQ(error_of<ShapeError>([&] { sum(wrong({4}, DType::float32)).backward(); }),
            "[exp] a gradient must have the shape of its value: got [4] and [3]");
  EXPECT_EQ(error_of<ValueError>([&] { sum(wrong({3}, DType::float64)).backward(); }),
            "[exp] a gradient must have the dtype of its value: got float64 and float32");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Safety, AHookSeesTheWholeGradientOfWhatWasLookedUp) {
  Variable x = parameter();
  std::vector<float> seen;
  x.add_hook([&seen](const Tensor& gradient) {
    seen = gradient.to_vector<float>();
    return gradient * 2.0;
  });
  (select(x, 0, 2) * 5.0 + sum(x)).backward();
  EXPECT_EQ(seen, (std::vector<float>{1, 1, 6}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2, 12}));
}

TEST(Safety, AHookMayNotWriteToItsGradient) {
  const Variable a = parameter(), b = parameter();
  Variable y = exp(a);
  y.add_hook([](const Tensor& gradient) {
    Tensor shared = gradient;
    return mul_(shared, 2);
  });
  EXPECT_THAT(error_of<ValueError>([&] { (y + b).backward(ones({3})); }), HasSubstr("must not change its gradient"));
  EXPECT_FALSE(b.grad().defined());
}

TEST(Safety, AHookMayAddAHook) {
  Variable x = parameter();
  int calls = 0;
  x.add_hook([&calls, &x](const Tensor&) {
    for (int i = 0; i < 100; ++i) x.add_hook([&calls](const Tensor&) { return ++calls, Tensor(); });
    return Tensor();
  });
  sum(x * 1.0).backward();
  EXPECT_EQ(calls, 100);
}

TEST(Safety, AHookMayNotChangeTheShape) {
  const Variable x = parameter();
  Variable y = exp(x);
  y.add_hook([](const Tensor&) { return ones({1}); });
  EXPECT_THAT(error_of<ShapeError>([&] { sum(y).backward(); }), HasSubstr("got [1] and [3]"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Safety, AnomalyModeNamesTheOperationThatMadeANan) {
  const AnomalyMode scope;
  const Variable x = Variable::parameter(Tensor::from({1, -1}, {2}));
  EXPECT_EQ(error_of<ValueError>([&] { exp(sqrt(x) + 1.0); }), "[anomaly] the result of sqrt holds a NaN: shape [2]");
  EXPECT_EQ(error_of<ValueError>([&] { log(x * 0.0); }), "[anomaly] the result of log holds an infinity: shape [2]");
}

TEST(Safety, AnomalyModeDoesNotBlameAnOperationForWhatItWasGiven) {
  const AnomalyMode scope;
  const Variable bad = Variable::parameter(Tensor::from({1, NAN}, {2})), x = parameter();
  EXPECT_EQ(error_of<ValueError>([&] { bad + 1.0; }), "[anomaly] an input of add holds a NaN: shape [2]");
  EXPECT_EQ(error_of<ValueError>([&] { (x + 1.0).backward(full({3}, NAN)); }),
            "[anomaly] the cotangent given to add holds a NaN: shape [3]");
  Variable y = x + 1.0;
  y.add_hook([](const Tensor& gradient) { return gradient / 0.0; });
  EXPECT_EQ(error_of<ValueError>([&] { sum(y).backward(); }),
            "[anomaly] a hook's gradient of add holds an infinity: shape [3]");
}

TEST(Safety, AnomalyModeNamesTheBackwardThatMadeAnInfinity) {
  const AnomalyMode scope;
  const Variable x = Variable::parameter(Tensor::from({0, 1}, {2}));
  const Variable y = sum(sqrt(x));
  EXPECT_EQ(error_of<ValueError>([&] { y.backward(); }),
            "[anomaly] a gradient from the backward of sqrt holds an infinity: shape [2]");
  const Variable added = record(Op::exp, x.value(), {x}, [](const Tensor& dy) {
    return Gradients{{dy.shape(), dy.dtype(), [](Tensor& sum) { add_(sum, INFINITY); }}};
  });
  EXPECT_EQ(error_of<ValueError>([&] { sum(added).backward(); }),
            "[anomaly] a gradient from the backward of exp holds an infinity: shape [2]");
}

TEST(Safety, ShapesThatDoNotFitAreNamed) {
  const Variable a = Variable::parameter(ones({4, 3})), b = Variable::parameter(ones({5, 2}));
  EXPECT_EQ(error_of<ShapeError>([&] { matmul(a, b); }), "[matmul] inner sizes must match: got [4, 3] and [5, 2]");
  EXPECT_EQ(error_of<ShapeError>([&] { a + b; }), "[add] shapes must be equal or broadcast: got [4, 3] and [5, 2]");
  EXPECT_EQ(error_of<ShapeError>([&] { linear(a, b, {}); }),
            "[linear] the last size of x must be the weight's second: got [4, 3] and [5, 2]");
}

}  // namespace
}  // namespace carousel
