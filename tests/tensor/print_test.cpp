#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/print.h>

#include <limits>
#include <sstream>

#include "support.h"

namespace carousel {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Print, AlignsLikeNumpy) {
  EXPECT_EQ(to_string(Tensor::from({1, 2.5, -10.25, 0}, {2, 2})), "[[  1.     2.5 ]\n [-10.25   0.  ]]");
  EXPECT_EQ(to_string(Tensor::from({1, 2, 3}, {3})), "[1. 2. 3.]");
  EXPECT_EQ(to_string(Tensor::from({0.1, 2}, {2})), "[0.1 2. ]");
  EXPECT_EQ(to_string(Tensor::scalar(3.5)), "3.5");
}

TEST(Print, IntegersAndBools) {
  EXPECT_EQ(to_string(Tensor::from({1, -20, 300}, {3}, DType::int64)), "[  1 -20 300]");
  EXPECT_EQ(to_string(Tensor::from({1, 0}, {2, 1}, DType::boolean)), "[[ True]\n [False]]");
}

TEST(Print, NanAndInfinity) {
  EXPECT_EQ(to_string(Tensor::from({nan, 1.5, -inf}, {3})), "[ nan  1.5 -inf]");
  EXPECT_EQ(to_string(Tensor::from({nan, inf}, {2})), "[nan inf]");
}

TEST(Print, PowersOfTenForWideRanges) {
  EXPECT_EQ(to_string(Tensor::from({1e-5, 1}, {2}, DType::float64)), "[1.0000e-05 1.0000e+00]");
  EXPECT_EQ(to_string(Tensor::from({0.5, 501}, {2})), "[5.0000e-01 5.0100e+02]");
  EXPECT_EQ(to_string(Tensor::from({0.5, 500}, {2})), "[  0.5 500. ]");
  EXPECT_EQ(to_string(Tensor::from({-1e10, nan}, {2}, DType::float64), {.precision = 2}), "[-1.00e+10       nan]");
}

TEST(Print, BlocksAreSetApart) {
  EXPECT_EQ(to_string(arange(8).reshape({2, 2, 2})), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
  EXPECT_EQ(to_string(arange(4).reshape({2, 2}).transpose(0, 1)), "[[0 2]\n [1 3]]");
}

TEST(Print, LeavesOutTheMiddle) {
  EXPECT_EQ(to_string(arange(2000)), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(to_string(arange(5), {.threshold = 4, .edge_items = 1}), "[0 ... 4]");
  EXPECT_EQ(to_string(arange(16).reshape({4, 4}), {.threshold = 10, .edge_items = 1}),
            "[[ 0 ...  3]\n ...\n [12 ... 15]]");
  EXPECT_EQ(to_string(arange(5), {.threshold = 4, .edge_items = 0}), "[...]");
  EXPECT_EQ(to_string(zeros({1LL << 20}).expand({1LL << 40, 1LL << 20}), {.edge_items = 1}),
            "[[0. ... 0.]\n ...\n [0. ... 0.]]");  // at once, whatever the size
}

TEST(Print, LongRowsGoOnBelow) {  // where NumPy breaks them
  EXPECT_EQ(to_string(arange(30)),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29]");
  EXPECT_EQ(to_string(arange(12).reshape({2, 6}), {.line_width = 12}),
            "[[ 0  1  2\n   3  4  5]\n [ 6  7  8\n   9 10 11]]");
  EXPECT_EQ(to_string(arange(3), {.line_width = 1}), "[0\n 1\n 2]");
  std::ostringstream out;
  out << arange(28);
  EXPECT_EQ(out.str(),
            "tensor([ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21\n"
            "        22 23 24 25 26 27], shape=[28], dtype=int64)");
}

TEST(Print, EmptyAndUndefined) {
  EXPECT_EQ(to_string(zeros({0, 3})), "[]");
  EXPECT_EQ(to_string(Tensor()), "undefined");
}

TEST(Print, StreamsWithShapeAndType) {
  std::ostringstream out;
  out << arange(4).reshape({2, 1, 2});
  EXPECT_EQ(out.str(), "tensor([[[0 1]]\n\n        [[2 3]]], shape=[2, 1, 2], dtype=int64)");
}

TEST(Print, ChecksItsOptions) {
  test::expect_error<ValueError>("[to_string] precision must be in [0, 50] and edge_items not negative: got -1 and 3",
                                 [] { to_string(zeros({1}), {.precision = -1}); });
  test::expect_error<ValueError>("[to_string] line_width must be positive: got 0",
                                 [] { to_string(zeros({1}), {.line_width = 0}); });
}

}  // namespace
}  // namespace carousel
