#pragma once

#include <carousel/tensor/random.h>
#include <carousel/tensor/tensor.h>

#include <functional>

/// Initial values. fan_in and fan_out are the last and first size of a matrix [out, in]. All but uniform, normal
/// and fan_in_uniform throw ShapeError for what is not a matrix with positive sizes; those ValueError for a bound or
/// deviation that is negative or not finite.
namespace carousel::init {

/// While one lives, this thread's initialisers give tensors of zeros that take no memory, and draw nothing: a model
/// made under it has shapes to compare, but cannot be used.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

 private:
  bool before_;
};

bool shapes_only();  ///< whether one lives in this thread

/// What `compute` gives, a tensor of this shape and dtype.
Tensor computed(const Shape& shape, DType dtype, const std::function<Tensor()>& compute);
Tensor constant(const Shape& shape, double value, DType dtype = DType::float32);
Tensor uniform(const Shape& shape, double bound, Rng& rng, DType dtype = DType::float32);  ///< U(-bound, bound)
Tensor normal(const Shape& shape, double deviation, Rng& rng, DType dtype = DType::float32);
/// U(-1/sqrt(n), 1/sqrt(n)) with n = fan_in: PyTorch's beginning of weights and biases whose sums run over n numbers.
/// Throws ValueError unless n is positive.
Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, Rng& rng, DType dtype = DType::float32);
/// GPT-2's deviations (Radford and others 2019): of weights, and of those whose result is added to a residual stream,
/// which two branches of each of `depth` blocks write to.
constexpr double gpt2_deviation = 0.02;
double gpt2_residual_deviation(int64_t depth);
Tensor xavier_uniform(const Shape& shape, Rng& rng, DType dtype = DType::float32);  ///< Glorot, Bengio 2010
Tensor xavier_normal(const Shape& shape, Rng& rng, DType dtype = DType::float32);
Tensor kaiming_uniform(const Shape& shape, Rng& rng, DType dtype = DType::float32);  ///< He and others 2015, ReLU gain
Tensor kaiming_normal(const Shape& shape, Rng& rng, DType dtype = DType::float32);
/// Orthonormal rows or columns, whichever are fewer (Saxe, McClelland, Ganguli 2014), times `gain`.
Tensor orthogonal(const Shape& shape, Rng& rng, double gain = 1, DType dtype = DType::float32);

}  // namespace carousel::init
