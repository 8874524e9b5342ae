#include <carousel/tensor/dims.h>

#include "support.h"

namespace carousel {
namespace {

using test::expect_error;

TEST(Dims, HoldsWhatIsPutIn) {
  Dims dims{2, 3, 4};
  dims.insert(1, 7);
  dims.erase(0);
  dims.push_back(-1);
  EXPECT_EQ(dims, Dims({7, 3, 4, -1}));
  EXPECT_EQ(to_string(dims), "[7, 3, 4, -1]");
  EXPECT_EQ(to_string(Dims{}), "[]");
  EXPECT_EQ(fmt::format("{}", Dims{5}), "[5]");
  EXPECT_NE(dims, Dims({7, 3, 4}));
}

TEST(Dims, RefusesANinthAxis) {
  Dims dims = Dims::filled(8, 1);
  expect_error<ShapeError>("[shape] a tensor has at most 8 dimensions: got 9", [&] { dims.push_back(1); });
  expect_error<ShapeError>("[shape] a tensor has at most 8 dimensions: got 9", [] {
    Dims({1, 1, 1, 1, 1, 1, 1, 1, 1});
  });
  expect_error<ShapeError>("[shape] a tensor has at most 8 dimensions: got 10", [] { Dims::filled(10, 0); });
}

TEST(Dims, NumelIsExactOrAnError) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({3, 0, 5}), 0);
  EXPECT_EQ(numel({1LL << 31, 1LL << 31}), 1LL << 62);
  expect_error<ShapeError>("[shape] the number of elements must fit into 63 bits: got [4294967296, 2147483648]", [] {
    numel({1LL << 32, 1LL << 31});
  });
  expect_error<ShapeError>("[shape] the number of elements must fit into 63 bits: got [0, 4294967296, 4294967296]", [] {
    numel({0, 1LL << 32, 1LL << 32});
  });  // its strides would overflow
  expect_error<ShapeError>("[shape] sizes must not be negative: got [2, -1]", [] { numel({2, -1}); });
}

TEST(Dims, StridesAreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Dims({12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), Dims({4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
}

TEST(Dims, AxesCountFromTheEnd) {
  EXPECT_EQ(normalize_axis("f", -1, 3), 2);
  EXPECT_EQ(normalize_axis("f", -3, 3), 0);
  expect_error<IndexError>("[f] axis must be in [-3, 2]: got 3", [] { normalize_axis("f", 3, 3); });
  expect_error<IndexError>("[f] axis must be in [-3, 2]: got -4", [] { normalize_axis("f", -4, 3); });
  expect_error<IndexError>("[f] axis must be in [0, -1]: got 0", [] { normalize_axis("f", 0, 0); });
}

TEST(Dims, BroadcastsByNumpysRule) {
  EXPECT_EQ(broadcast_shapes("f", {2, 1, 4}, {3, 1}), Shape({2, 3, 4}));
  EXPECT_EQ(broadcast_shapes("f", {}, {5}), Shape{5});
  EXPECT_EQ(broadcast_shapes("f", {0, 1}, {1, 3}), Shape({0, 3}));
  expect_error<ShapeError>("[f] shapes must be equal or broadcast: got [2, 3] and [2]", [] {
    broadcast_shapes("f", {2, 3}, {2});
  });
  expect_error<ShapeError>("[f] shapes must be equal or broadcast: got [0] and [2]",
                           [] { broadcast_shapes("f", {0}, {2}); });
}

}  // namespace
}  // namespace carousel
