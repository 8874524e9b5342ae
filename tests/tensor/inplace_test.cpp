#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include "support.h"

namespace carousel {
namespace {

using test::expect_error;
using test::scrambled;

template <class T>
void check_in_place() {
  using InPlace = Tensor& (*)(Tensor&, const Tensor&);
  using OutOfPlace = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<InPlace, OutOfPlace> operations[] = {{add_, add}, {sub_, sub}, {mul_, mul}, {div_, div}};
  Rng rng(21);
  for (const auto& [in_place, out_of_place] : operations) {
    for (const Shape& b_shape : {Shape{4, 3}, Shape{3}, Shape{4, 1}, Shape{}}) {
      Tensor a = scrambled<T>({4, 3}, rng);
      const Tensor b = abs(scrambled<T>(b_shape, rng)) + 1;
      const Tensor expected = out_of_place(a, b);
      const uint64_t version = a.version();
      EXPECT_EQ(&in_place(a, b), &a);
      EXPECT_TRUE(identical(a, expected));
      EXPECT_EQ(a.version(), version + 1);
    }
  }
  Tensor a = scrambled<T>({4, 3}, rng);
  const Tensor expected = (a + 5) * 2;
  EXPECT_TRUE(identical(mul_(add_(a, 5), 2), expected));
}

TEST(InPlace, EqualsTheOutOfPlaceForm) {
  check_in_place<float>();
  check_in_place<double>();
  check_in_place<int64_t>();
}

TEST(InPlace, LeavesTheRestOfTheStorageAlone) {
  Tensor x = zeros({3, 4}, DType::int64);
  Tensor column = x.select(1, 2);
  add_(column, arange(3) + 1);
  EXPECT_EQ(x.to_vector<int64_t>(), std::vector<int64_t>({0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0}));
}

TEST(InPlace, OperandInTheSameMemory) {
  Tensor x = arange(5, DType::float64);
  add_(x, x);  // the very same layout: no copy is needed
  EXPECT_EQ(x.to_vector<double>(), std::vector<double>({0, 2, 4, 6, 8}));
  Tensor square = arange(9).reshape({3, 3});
  add_(square, square.transpose(0, 1));
  EXPECT_EQ(square.to_vector<int64_t>(), std::vector<int64_t>({0, 4, 8, 4, 8, 12, 8, 12, 16}));
}

// HD-09: results must not depend on the order of elements or on the width of vector registers.
TEST(InPlace, OverlappingOperandGivesTheOutOfPlaceResult) {
  Tensor a = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  sub_(a, a.slice(1, {.stop = 1}));
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>({0, 1, 2, 0, 1, 2}));
  for (int64_t width : {16, 17, 33}) {
    Tensor b = ones({2, width});
    sub_(b, b.slice(1, {.stop = 1}));
    EXPECT_TRUE(identical(b, zeros({2, width}))) << width;
  }
  Tensor d = Tensor::from({10, 11, 12, 13, 14, 13, 12, 11}, {8}, DType::float64);
  Tensor tail = d.slice(0, {.start = 1});
  div_(tail, d.slice(0, {.stop = 7}));
  EXPECT_EQ(d.to_vector<double>(),
            std::vector<double>({10, 11.0 / 10, 12.0 / 11, 13.0 / 12, 14.0 / 13, 13.0 / 14, 12.0 / 13, 11.0 / 12}));
}

TEST(InPlace, RefusesElementsThatOverlapOneAnother) {  // HD-09 (d)
  Tensor x = full({}, 0.7853981633974483).expand({3});
  const std::string rule = " cannot write to a tensor whose elements overlap: got shape [3] with strides [0]";
  expect_error<ValueError>("[mul_]" + rule, [&] { mul_(x, 2); });
  expect_error<ValueError>("[add_]" + rule, [&] { add_(x, ones({3})); });
  expect_error<ValueError>("[fill_]" + rule, [&] { x.fill_(1); });
  expect_error<ValueError>("[copy_]" + rule, [&] { x.copy_(ones({3})); });
  EXPECT_EQ(x.select(0, 1).item<float>(), 0.7853981633974483F);
  Tensor windows(zeros({5}).storage(), 0, {3, 3}, {1, 1}, DType::float32);
  expect_error<ValueError>(
      "[add_] cannot write to a tensor whose elements overlap: got shape [3, 3] with strides [1, 1]",
      [&] { add_(windows, 1); });
  Tensor apart = zeros({1, 3}).expand({1, 3});  // expands nothing
  add_(apart, 1);
  Tensor empty = zeros({1, 3}).expand({0, 3});
  add_(empty, 1);
  Tensor view = zeros({4, 6, 3}).slice(1, {.start = 1, .step = 3}).permute({2, 0, 1});  // strided, but distinct
  add_(view, 1);
}

TEST(InPlace, MayOverlapGoesByAddresses) {
  const Tensor x = zeros({4, 4});
  EXPECT_TRUE(may_overlap(x, x.select(0, 3)));
  EXPECT_FALSE(may_overlap(x.select(0, 0), x.select(0, 1)));
  EXPECT_FALSE(may_overlap(x, x.clone()));
  EXPECT_FALSE(may_overlap(x, x.slice(0, {.stop = 0})));
  EXPECT_TRUE(may_overlap(x.select(1, 0), x.select(1, 1)));  // interleaved: their ranges meet
}

TEST(InPlace, ErrorsLeaveTheTargetAsItWas) {
  Tensor x = ones({2, 3}), whole = arange(3);
  expect_error<ShapeError>("[add_] the operand must broadcast to the target's shape: got [4, 2, 3] and [2, 3]", [&] {
    add_(x, zeros({4, 2, 3}));
  });
  expect_error<ShapeError>("[mul_] shapes must be equal or broadcast: got [2, 3] and [2]",
                           [&] { mul_(x, zeros({2})); });
  expect_error<ValueError>("[sub_] operands must have one dtype: got float32 and int64",
                           [&] { sub_(x, zeros({3}, DType::int64)); });
  expect_error<ValueError>("[div_] an int64 divisor must not be 0: got one in shape [3]",
                           [&] { div_(whole, arange(3)); });
  expect_error<ValueError>("[add_] a number for int64 must be whole and fit into 64 bits: got 0.25",
                           [&] { add_(whole, 0.25); });
  EXPECT_TRUE(identical(x, ones({2, 3})));
  EXPECT_TRUE(identical(whole, arange(3)));
}

}  // namespace
}  // namespace carousel
