#include "kernels_common.h"

#include <carousel/tensor/kernels/packed_matrix.h>

#include <memory>

namespace carousel::kernels {
namespace {

template <class T>
class PackedProduct : public ForFloats<T> {};
TYPED_TEST_SUITE(PackedProduct, Floats);

/// C = C0 + A W, W [k, n] kept transposed if asked, rows of A and C further apart than they are long.
template <class T>
void compare_with_plain(int64_t rows, int64_t k, int64_t n, bool transposed, Into into) {
  SCOPED_TRACE(testing::Message() << rows << " x " << k << " x " << n << (transposed ? " transposed" : ""));
  const int64_t a_stride = k + 3, c_stride = n + 5;
  const int64_t row_stride = transposed ? 1 : n + 2, column_stride = transposed ? k + 2 : 1;
  const auto a = random_numbers<T>(rows * a_stride, 1), w = random_numbers<T>((n + 2) * (k + 2), 2);
  const auto before = random_numbers<T>(rows * c_stride, 3);
  auto c = before;
  const PackedMatrix<T> packed(k, n, w.data(), row_stride, column_stride);
  packed.multiply(rows, a.data(), a_stride, c.data(), c_stride, into);

  std::vector<double> exact(before.begin(), before.end()), size = magnitudes(before);
  const std::vector<double> wide_a(a.begin(), a.end()), wide_w(w.begin(), w.end());
  plain::multiply(rows, k, n, wide_a.data(), a_stride, wide_w.data(), row_stride, column_stride, exact.data(), c_stride,
                  into);
  plain::multiply(rows, k, n, magnitudes(a).data(), a_stride, magnitudes(w).data(), row_stride, column_stride,
                  size.data(), c_stride, into);
  for (int64_t i = 0; i < rows * c_stride; ++i) {
    // The bound of packed_matrix.h; for double, twice, as the sum it is compared with has the same error.
    const double bound = (sizeof(T) == 4 ? 1 : 2) * static_cast<double>(k + 2) * rounding<T> * size[i];
    const bool inside = i % c_stride < n;
    ASSERT_LE(std::abs(c[i] - exact[i]), inside ? bound : 0) << "row " << i / c_stride << ", column " << i % c_stride;
  }
}

TYPED_TEST(PackedProduct, EqualsThePlainOneForOddSizes) {
  for_each_target([] {
    for (const int64_t rows : {1, 2, 5, 6, 7, 8, 9, 25}) {
      for (const int64_t n : {1, 7, 8, 16, 31, 32, 33, 65, 150}) {
        compare_with_plain<TypeParam>(rows, 37, n, true, Into::accumulate);
        compare_with_plain<TypeParam>(rows, 16, n, false, Into::overwrite);
      }
    }
  });
}

TYPED_TEST(PackedProduct, TakesEmptySizes) {
  for_each_target([] {
    compare_with_plain<TypeParam>(3, 0, 5, true, Into::overwrite);
    compare_with_plain<TypeParam>(3, 0, 5, true, Into::accumulate);
    compare_with_plain<TypeParam>(0, 4, 5, false, Into::overwrite);
    compare_with_plain<TypeParam>(3, 4, 0, false, Into::overwrite);
  });
}

TYPED_TEST(PackedProduct, OverwritesWhateverWasThereAndSpreadsNan) {
  using T = TypeParam;
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> w{1, 2, 3, 4}, a{1, 1, nan, 1};
  for_each_target([&] {
    std::vector<T> c(4, nan);
    PackedMatrix<T>(2, 2, w.data(), 2, 1).multiply(2, a.data(), 2, c.data(), 2, Into::overwrite);
    EXPECT_EQ(c[0], 4);
    EXPECT_EQ(c[1], 6);
    EXPECT_TRUE(std::isnan(c[2]) && std::isnan(c[3]));
  });
}

TYPED_TEST(PackedProduct, PackingAgainReplacesTheMatrix) {
  using T = TypeParam;
  const auto a = random_numbers<T>(3 * 50, 1), w = random_numbers<T>(50 * 70, 2);
  for_each_target([&] {
    PackedMatrix<T> packed(50, 70);
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{50, 70}, {20, 70}, {50, 9}, {7, 1}}) {
      std::vector<T> again(3 * n), fresh(3 * n);
      packed.pack(k, n, w.data(), 1, k);
      packed.multiply(3, a.data(), k, again.data(), n, Into::overwrite);
      PackedMatrix<T>(k, n, w.data(), 1, k).multiply(3, a.data(), k, fresh.data(), n, Into::overwrite);
      EXPECT_EQ(again, fresh) << k << " x " << n;
    }
  });
}

TYPED_TEST(PackedProduct, APartOfItIsTheProductWithThatPart) {
  using T = TypeParam;
  using Part = typename PackedBlock<T>::Part;
  const int64_t rows = 11, k = 45, n = 75;
  const auto a = random_numbers<T>(rows * k, 1), w = random_numbers<T>(k * n, 2);
  for_each_target([&] {
    std::vector<T> memory(PackedBlock<T>::memory_size(k, n) + 64 / sizeof(T));
    void* aligned = memory.data();
    size_t space = memory.size() * sizeof(T);
    const PackedBlock<T> packed(k, n, static_cast<T*>(std::align(64, sizeof(T), aligned, space)));
    packed.pack(w.data(), n, 1);
    for (const Part& part : {Part{0, 45, 75}, Part{0, 17, 75}, Part{9, 36, 40}, Part{44, 1, 1}, Part{3, 0, 9}}) {
      SCOPED_TRACE(testing::Message() << part.first_row << ' ' << part.rows << ' ' << part.columns);
      std::vector<T> c(rows * n, T{1}), expected = c;
      packed.multiply(part, rows, {a.data(), k}, c.data(), n, Into::accumulate);
      const PackedMatrix<T> alone(part.rows, part.columns, w.data() + part.first_row * n, n, 1);
      alone.multiply(rows, a.data(), k, expected.data(), n, Into::accumulate);
      EXPECT_EQ(c, expected);
    }
  });
}

TYPED_TEST(PackedProduct, ARowDoesNotDependOnItsNeighbours) {
  using T = TypeParam;
  const int64_t rows = 13, k = 50, n = 170;  // several tiles, several panels, and for one row a group of panels
  const auto a = random_numbers<T>(rows * k, 1), w = random_numbers<T>(k * n, 2);
  for_each_target([&] {
    const PackedMatrix<T> packed(k, n, w.data(), n, 1);
    std::vector<T> together(rows * n), alone(rows * n);
    packed.multiply(rows, a.data(), k, together.data(), n, Into::overwrite);
    for (int64_t r = 0; r < rows; ++r)
      packed.multiply(1, a.data() + r * k, k, alone.data() + r * n, n, Into::overwrite);
    EXPECT_EQ(together, alone);
  });
}

}  // namespace
}  // namespace carousel::kernels
