#include <carousel/nn/init.h>

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace carousel::init {
namespace {

thread_local bool only_shapes = false;

// One zero, seen as often as `shape` asks.
Tensor shape_alone(const Shape& shape, DType dtype) { return zeros({}, dtype).expand(shape); }

struct Fans {
  double in;
  double out;
};

Fans fans(std::string_view operation, const Shape& shape) {
  check<ShapeError>(shape.rank() == 2, operation, "shape must be a matrix [out, in]: got {}", to_string(shape));
  check<ShapeError>(numel(shape) > 0, operation, "sizes must be positive: got {}", to_string(shape));
  return {static_cast<double>(shape[1]), static_cast<double>(shape[0])};
}

// Gram and Schmidt's way, run twice over each vector so that rounding leaves no rest along the earlier ones.
void orthonormalise(std::vector<std::vector<double>>& columns) {
  for (size_t j = 0; j < columns.size(); ++j) {
    std::vector<double>& column = columns[j];
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t k = 0; k < j; ++k) {
        double along = 0;
        for (size_t i = 0; i < column.size(); ++i) along += column[i] * columns[k][i];
        for (size_t i = 0; i < column.size(); ++i) column[i] -= along * columns[k][i];
      }
    }
    double squares = 0;
    for (const double value : column) squares += value * value;
    for (double& value : column) value /= std::sqrt(squares);
  }
}

}  // namespace

ShapesOnly::ShapesOnly() : before_(std::exchange(only_shapes, true)) {}
ShapesOnly::~ShapesOnly() { only_shapes = before_; }
bool shapes_only() { return only_shapes; }

Tensor computed(const Shape& shape, DType dtype, const std::function<Tensor()>& compute) {
  return only_shapes ? shape_alone(shape, dtype) : compute();
}

Tensor constant(const Shape& shape, double value, DType dtype) {
  return computed(shape, dtype, [&shape, value, dtype] { return full(shape, value, dtype); });
}

Tensor uniform(const Shape& shape, double bound, Rng& rng, DType dtype) {
  check<ValueError>(std::isfinite(bound) && bound >= 0, "init::uniform", "bound must be finite and >= 0: got {}",
                    bound);
  if (only_shapes) return shape_alone(shape, dtype);
  return rng.uniform(shape, -bound, bound, dtype);
}

Tensor normal(const Shape& shape, double deviation, Rng& rng, DType dtype) {
  check<ValueError>(std::isfinite(deviation) && deviation >= 0, "init::normal",
                    "deviation must be finite and >= 0: got {}", deviation);
  if (only_shapes) return shape_alone(shape, dtype);
  return rng.normal(shape, 0, deviation, dtype);
}

double gpt2_residual_deviation(int64_t depth) { return gpt2_deviation / std::sqrt(2 * static_cast<double>(depth)); }

Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, Rng& rng, DType dtype) {
  check<ValueError>(fan_in > 0, "init::fan_in_uniform", "fan_in must be positive: got {}", fan_in);
  return uniform(shape, 1 / std::sqrt(static_cast<double>(fan_in)), rng, dtype);
}

Tensor xavier_uniform(const Shape& shape, Rng& rng, DType dtype) {
  const Fans fan = fans("init::xavier_uniform", shape);
  return uniform(shape, std::sqrt(6 / (fan.in + fan.out)), rng, dtype);
}

Tensor xavier_normal(const Shape& shape, Rng& rng, DType dtype) {
  const Fans fan = fans("init::xavier_normal", shape);
  return normal(shape, std::sqrt(2 / (fan.in + fan.out)), rng, dtype);
}

Tensor kaiming_uniform(const Shape& shape, Rng& rng, DType dtype) {
  return uniform(shape, std::sqrt(6 / fans("init::kaiming_uniform", shape).in), rng, dtype);
}

Tensor kaiming_normal(const Shape& shape, Rng& rng, DType dtype) {
  return normal(shape, std::sqrt(2 / fans("init::kaiming_normal", shape).in), rng, dtype);
}

Tensor orthogonal(const Shape& shape, Rng& rng, double gain, DType dtype) {
  fans("init::orthogonal", shape);
  if (only_shapes) return shape_alone(shape, dtype);
  const int64_t length = std::max(shape[0], shape[1]);
  const int64_t count = std::min(shape[0], shape[1]);
  const std::vector<double> values = rng.normal({count, length}, 0, 1, DType::float64).to_vector<double>();
  std::vector<std::vector<double>> vectors;
  for (int64_t j = 0; j < count; ++j) {
    vectors.emplace_back(values.begin() + j * length, values.begin() + (j + 1) * length);
  }
  orthonormalise(vectors);

  std::vector<double> flat;
  for (const std::vector<double>& vector : vectors) flat.insert(flat.end(), vector.begin(), vector.end());
  const Tensor rows = Tensor::from(flat, {count, length}) * gain;
  return (shape[0] <= shape[1] ? rows : rows.transpose(0, 1)).contiguous().to(dtype);
}

}  // namespace carousel::init
