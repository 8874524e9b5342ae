#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/random.h>
#include <carousel/tensor/operands.h>
#include <carousel/tensor/random.h>

#include <cmath>
#include <utility>

namespace carousel {
namespace {

uint64_t blocks_for(int64_t count, int64_t per_block) {
  return static_cast<uint64_t>(count / per_block + (count % per_block != 0));
}

uint64_t range_of(std::string_view operation, int64_t low, int64_t high) {
  check<ValueError>(low < high, operation, "low must be below high: got {} and {}", low, high);
  return static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
}

/// The sum of a row of weights for multinomial, which must make sense as one.
template <class T>
double sum_of_weights(const T* row, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    check<ValueError>(row[i] >= 0 && std::isfinite(row[i]), "multinomial",
                      "weights must be finite and not negative: got {}", row[i]);
    sum += row[i];
  }
  check<ValueError>(sum > 0 && std::isfinite(sum), "multinomial", "weights must have a positive, finite sum: got {}",
                    sum);
  return sum;
}

/// The first position at which the cumulative sum of weights exceeds `target`.
template <class T>
int64_t position_of(const T* row, int64_t size, double target) {
  double sum = 0;
  int64_t last_positive = 0;
  for (int64_t i = 0; i < size; ++i) {
    sum += row[i];
    if (sum > target) return i;
    if (row[i] > 0) last_positive = i;
  }
  return last_positive;  // the target was rounded up to the whole sum
}

}  // namespace

std::array<uint32_t, 4> Rng::block(uint64_t seed, uint64_t counter) { return kernels::philox_block(seed, counter); }

uint64_t Rng::take(uint64_t blocks) { return std::exchange(counter_, counter_ + blocks); }

uint64_t Rng::next_u64() { return kernels::half(block(seed_, take(1)), 0); }

double Rng::next_uniform() { return kernels::to_unit(next_u64()); }

int64_t Rng::next_integer(int64_t low, int64_t high) {
  const uint64_t range = range_of("next_integer", low, high);
  return kernels::integer_at(seed_, take(1), low, range);
}

Tensor Rng::uniform(const Shape& shape, double low, double high, DType dtype) {
  check<ValueError>(low <= high && std::isfinite(high - low), "uniform",
                    "bounds must be finite and low must not exceed high: got {} and {}", low, high);
  return dispatch_floating("uniform", dtype, [&](auto type) {
    using T = decltype(type);
    Tensor result(shape, dtype);
    const uint64_t first = take(blocks_for(result.numel(), kernels::uniforms_per_block<T>));
    kernels::fill_uniform(result.mutable_data<T>(), result.numel(), seed_, first, low, high);
    return result;
  });
}

Tensor Rng::normal(const Shape& shape, double mean, double deviation, DType dtype) {
  check<ValueError>(std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0, "normal",
                    "mean must be finite, deviation too and not negative: got {} and {}", mean, deviation);
  return dispatch_floating("normal", dtype, [&](auto type) {
    using T = decltype(type);
    Tensor result(shape, dtype);
    const uint64_t first = take(blocks_for(result.numel(), kernels::normals_per_block));
    kernels::fill_normal(result.mutable_data<T>(), result.numel(), seed_, first, mean, deviation);
    return result;
  });
}

Tensor Rng::integers(const Shape& shape, int64_t low, int64_t high) {
  const uint64_t range = range_of("integers", low, high);
  Tensor result(shape, DType::int64);
  const uint64_t first = take(blocks_for(result.numel(), kernels::integers_per_block));
  kernels::fill_integers(result.mutable_data<int64_t>(), result.numel(), seed_, first, low, range);
  return result;
}

Tensor Rng::permutation(int64_t count) {
  check<ValueError>(count >= 0, "permutation", "count must not be negative: got {}", count);
  Tensor result({count}, DType::int64);
  int64_t* order = result.mutable_data<int64_t>();
  for (int64_t i = 0; i < count; ++i) {  // Fisher and Yates, from the front
    order[i] = i;
    std::swap(order[i], order[next_integer(0, i + 1)]);
  }
  return result;
}

Tensor Rng::multinomial(const Tensor& weights) {
  check_defined("multinomial", weights);
  check<ShapeError>(weights.rank() >= 1, "multinomial", "weights need at least one axis: got shape {}",
                    weights.shape());
  const int64_t size = weights.size(-1);
  Shape shape = weights.shape();
  shape.erase(shape.rank() - 1);
  Tensor result(shape, DType::int64);
  int64_t* out = result.mutable_data<int64_t>();
  const Tensor rows = weights.contiguous();
  dispatch_floating("multinomial", weights.dtype(), [&](auto type) {
    const auto* row = rows.data<decltype(type)>();
    for (int64_t i = 0; i < result.numel(); ++i, row += size) {
      const double sum = sum_of_weights(row, size);
      out[i] = position_of(row, size, next_uniform() * sum);
    }
  });
  return result;
}

}  // namespace carousel
