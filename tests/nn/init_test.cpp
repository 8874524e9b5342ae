#include "expect_error.h"

#include <carousel/nn/init.h>
#include <carousel/nn/registry.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel {
namespace {

double deviation(const Tensor& x) { return std::sqrt(mean(square(x)).item() - std::pow(mean(x).item(), 2)); }

TEST(Init, UniformStaysInItsBound) {
  Rng rng(1);
  const Tensor x = init::uniform({100, 100}, 0.25, rng, DType::float64);
  EXPECT_LE(max(abs(x)).item(), 0.25);
  EXPECT_GT(max(abs(x)).item(), 0.249);
  EXPECT_NEAR(deviation(x), 0.25 / std::sqrt(3), 3e-3);  // four standard errors of 10,000 draws
}

TEST(Init, FanInUniformIsUniformToOneByTheRoot) {
  Rng rng(6), same(6);
  EXPECT_TRUE(identical(init::fan_in_uniform({3, 5}, 16, rng), init::uniform({3, 5}, 0.25, same)));
}

// Deviations by the papers' formulas, within four standard errors: 1 / sqrt(2 * 20,000) is half a percent.
TEST(Init, DeviationsAreThoseOfThePapers) {
  Rng rng(2);
  const Shape shape = {100, 200};  // fan_out, fan_in
  const double xavier = std::sqrt(2.0 / 300);
  const double kaiming = std::sqrt(2.0 / 200);
  EXPECT_NEAR(deviation(init::xavier_uniform(shape, rng, DType::float64)) / xavier, 1, 0.02);
  EXPECT_NEAR(deviation(init::xavier_normal(shape, rng, DType::float64)) / xavier, 1, 0.02);
  EXPECT_NEAR(deviation(init::kaiming_uniform(shape, rng, DType::float64)) / kaiming, 1, 0.02);
  EXPECT_NEAR(deviation(init::kaiming_normal(shape, rng, DType::float64)) / kaiming, 1, 0.02);
  EXPECT_NEAR(deviation(init::normal(shape, 0.02, rng, DType::float64)) / 0.02, 1, 0.02);
}

TEST(Init, OrthogonalRowsOrColumnsAreOrthonormal) {
  Rng rng(3);
  const Tensor wide = init::orthogonal({4, 7}, rng, 1, DType::float64);
  EXPECT_TRUE(all_close(matmul(wide, wide.transpose(0, 1)), eye(4, DType::float64), 0, 1e-14));
  const Tensor tall = init::orthogonal({7, 4}, rng, 2, DType::float64);
  EXPECT_TRUE(all_close(matmul(tall.transpose(0, 1), tall), eye(4, DType::float64) * 4.0, 0, 1e-13));
  EXPECT_EQ(init::orthogonal({3, 3}, rng).dtype(), DType::float32);
}

TEST(Init, SameSeedSameNumbers) {
  Rng a(4), b(4);
  EXPECT_TRUE(identical(init::kaiming_normal({3, 5}, a), init::kaiming_normal({3, 5}, b)));
}

TEST(Init, RefusesWhatMakesNoSense) {
  Rng rng(5);
  test::expect_error<ShapeError>([&] { init::xavier_uniform({3}, rng); }, {"[init::xavier_uniform]", "[3]"});
  test::expect_error<ShapeError>([&] { init::orthogonal({0, 3}, rng); }, {"[init::orthogonal]", "[0, 3]"});
  test::expect_error<ValueError>([&] { init::uniform({3}, -1, rng); }, {"bound", "-1"});
  test::expect_error<ValueError>([&] { init::fan_in_uniform({3}, 0, rng); }, {"fan_in must be positive", "got 0"});
  test::expect_error<ValueError>([&] { init::normal({3}, NAN, rng); }, {"deviation", "nan"});
}

TEST(ShapesOnly, LetsEveryKindBeMadeWithoutMemoryForItsParameters) {
  const init::ShapesOnly no_memory;
  Rng rng(1);
  for (const LayerKind& kind : layer_kinds()) {
    const uint64_t before = storage_stats().live_bytes;
    const auto layer = kind.make({.input_size = 65536, .hidden_size = 65536}, kind.default_config(), rng);
    EXPECT_LT(storage_stats().live_bytes - before, 65536U) << kind.name;  // one zero for each parameter
    EXPECT_GE(layer->parameter_count(), int64_t{65536} * 65536) << kind.name;
  }
}

}  // namespace
}  // namespace carousel
