#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/layer_norm.h>
#include <carousel/tensor/kernels/parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The sum of x - center.
template <class T>
T sum_from(int64_t n, const T* x, T center) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, center);
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) sums = hn::Add(sums, hn::Sub(hn::LoadU(d, x + i), shift));
  T sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += x[i] - center;
  return sum;
}

/// The mean, with what the rounding of a long sum far from zero has left in it taken off.
template <class T>
T row_mean(int64_t n, const T* x) {
  const T mean = sum_from(n, x, T{0}) / static_cast<T>(n);
  return mean + sum_from(n, x, mean) / static_cast<T>(n);
}

template <class T>
T squared_deviations(int64_t n, const T* x, T mean) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto center = hn::Set(d, mean);
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto deviation = hn::Sub(hn::LoadU(d, x + i), center);
    sums = hn::MulAdd(deviation, deviation, sums);
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

template <class T>
void forward_row(const LayerNormShape& shape, const T* x, const T* weight, const T* bias, T* y, T* mean, T* r) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = shape.size;
  *mean = shape.centered ? row_mean(n, x) : 0;
  const double variance = squared_deviations(n, x, *mean) / static_cast<double>(n);
  *r = static_cast<T>(1 / std::sqrt(variance + shape.eps));
  const auto center = hn::Set(d, *mean), scale = hn::Set(d, *r);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i), center), scale);
    hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, weight + i), hn::LoadU(d, bias + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = (x[i] - *mean) * *r * weight[i] + bias[i];
}

/// dx of one row; adds the row to dweight and dbias.
template <class T>
void backward_row(const LayerNormShape& shape, const T* x, const T* weight, T mean, T r, const T* dy, T* dx, T* dweight,
                  T* dbias) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t n = shape.size;
  const auto center = hn::Set(d, mean), scale = hn::Set(d, r);
  auto sums_g = hn::Zero(d), sums_gn = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i), center), scale);
    const auto cotangent = hn::LoadU(d, dy + i);
    const auto g = hn::Mul(cotangent, hn::LoadU(d, weight + i));
    sums_g = hn::Add(sums_g, g);
    sums_gn = hn::MulAdd(g, normal, sums_gn);
    hn::StoreU(hn::MulAdd(cotangent, normal, hn::LoadU(d, dweight + i)), d, dweight + i);
    hn::StoreU(hn::Add(cotangent, hn::LoadU(d, dbias + i)), d, dbias + i);
  }
  T sum_g = hn::GetLane(hn::SumOfLanes(d, sums_g)), sum_gn = hn::GetLane(hn::SumOfLanes(d, sums_gn));
  for (; i < n; ++i) {
    const T normal = (x[i] - mean) * r, g = dy[i] * weight[i];
    sum_g += g;
    sum_gn += g * normal;
    dweight[i] += dy[i] * normal;
    dbias[i] += dy[i];
  }
  const T mean_g = shape.centered ? sum_g / static_cast<T>(n) : 0, mean_gn = sum_gn / static_cast<T>(n);
  const auto shift = hn::Set(d, mean_g), slope = hn::Set(d, mean_gn);
  for (i = 0; i + lanes <= n; i += lanes) {
    const auto normal = hn::Mul(hn::Sub(hn::LoadU(d, x + i), center), scale);
    const auto g = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, weight + i));
    hn::StoreU(hn::Mul(scale, hn::NegMulAdd(normal, slope, hn::Sub(g, shift))), d, dx + i);
  }
  for (; i < n; ++i) dx[i] = r * (dy[i] * weight[i] - mean_g - (x[i] - mean) * r * mean_gn);
}

void forward_row_float(const LayerNormShape& shape, const float* x, const float* weight, const float* bias, float* y,
                       float* mean, float* r) {
  forward_row(shape, x, weight, bias, y, mean, r);
}
void forward_row_double(const LayerNormShape& shape, const double* x, const double* weight, const double* bias,
                        double* y, double* mean, double* r) {
  forward_row(shape, x, weight, bias, y, mean, r);
}
void backward_row_float(const LayerNormShape& shape, const float* x, const float* weight, float mean, float r,
                        const float* dy, float* dx, float* dweight, float* dbias) {
  backward_row(shape, x, weight, mean, r, dy, dx, dweight, dbias);
}
void backward_row_double(const LayerNormShape& shape, const double* x, const double* weight, double mean, double r,
                         const double* dy, double* dx, double* dweight, double* dbias) {
  backward_row(shape, x, weight, mean, r, dy, dx, dweight, dbias);
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(forward_row_float);
HWY_EXPORT(forward_row_double);
HWY_EXPORT(backward_row_float);
HWY_EXPORT(backward_row_double);

namespace {

constexpr int64_t row_grain = 64;

template <class T, class Row>
void forward_rows(const LayerNormShape& shape, const T* x, const T* weight, const T* bias, T* y, T* mean, T* r,
                  Row forward_row) {
  parallel_ranges(shape.rows, row_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      forward_row(shape, x + i * shape.size, weight, bias, y + i * shape.size, mean + i, r + i);
    }
  });
}

template <class T, class Row>
void backward_rows(const LayerNormShape& shape, const T* x, const T* weight, const T* mean, const T* r, const T* dy,
                   T* dx, T* dweight, T* dbias, Row backward_row) {
  const int64_t n = shape.size, ranges = (shape.rows + row_grain - 1) / row_grain;
  std::vector<T> sums(ranges * 2 * n);  // dweight and dbias of each range
  parallel_ranges(shape.rows, row_grain, [&](int64_t begin, int64_t end) {
    T* const range_sums = sums.data() + begin / row_grain * 2 * n;
    for (int64_t i = begin; i < end; ++i) {
      backward_row(shape, x + i * n, weight, mean[i], r[i], dy + i * n, dx + i * n, range_sums, range_sums + n);
    }
  });
  std::fill_n(dweight, n, T{0});
  std::fill_n(dbias, n, T{0});
  for (int64_t range = 0; range < ranges; ++range) {
    const T* const range_sums = sums.data() + range * 2 * n;
    for (int64_t j = 0; j < n; ++j) dweight[j] += range_sums[j];
    for (int64_t j = 0; j < n; ++j) dbias[j] += range_sums[n + j];
  }
}

}  // namespace

void layer_norm(const LayerNormShape& shape, const float* x, const float* weight, const float* bias, float* y,
                float* mean, float* r) {
  forward_rows(shape, x, weight, bias, y, mean, r, HWY_DYNAMIC_DISPATCH(forward_row_float));
}
void layer_norm(const LayerNormShape& shape, const double* x, const double* weight, const double* bias, double* y,
                double* mean, double* r) {
  forward_rows(shape, x, weight, bias, y, mean, r, HWY_DYNAMIC_DISPATCH(forward_row_double));
}
void layer_norm_backward(const LayerNormShape& shape, const float* x, const float* weight, const float* mean,
                         const float* r, const float* dy, float* dx, float* dweight, float* dbias) {
  backward_rows(shape, x, weight, mean, r, dy, dx, dweight, dbias, HWY_DYNAMIC_DISPATCH(backward_row_float));
}
void layer_norm_backward(const LayerNormShape& shape, const double* x, const double* weight, const double* mean,
                         const double* r, const double* dy, double* dx, double* dweight, double* dbias) {
  backward_rows(shape, x, weight, mean, r, dy, dx, dweight, dbias, HWY_DYNAMIC_DISPATCH(backward_row_double));
}

namespace plain {

template <class T>
void layer_norm(const LayerNormShape& shape, const T* x, const T* weight, const T* bias, T* y, T* mean, T* r) {
  const int64_t n = shape.size;
  for (int64_t i = 0; i < shape.rows; ++i, x += n, y += n) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) sum += x[j];
    const double center = shape.centered ? sum / n : 0;
    for (int64_t j = 0; j < n; ++j) squares += (x[j] - center) * (x[j] - center);
    const double scale = 1 / std::sqrt(squares / n + shape.eps);
    for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>((x[j] - center) * scale * weight[j] + bias[j]);
    mean[i] = static_cast<T>(center);
    r[i] = static_cast<T>(scale);
  }
}

template <class T>
void layer_norm_backward(const LayerNormShape& shape, const T* x, const T* weight, const T* mean, const T* r,
                         const T* dy, T* dx, T* dweight, T* dbias) {
  const int64_t n = shape.size;
  std::vector<double> weight_sums(n), bias_sums(n);
  for (int64_t i = 0; i < shape.rows; ++i, x += n, dy += n, dx += n) {
    double mean_g = 0, mean_gn = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double normal = (static_cast<double>(x[j]) - mean[i]) * r[i], g = static_cast<double>(dy[j]) * weight[j];
      if (shape.centered) mean_g += g / n;
      mean_gn += g * normal / n;
      weight_sums[j] += dy[j] * normal;
      bias_sums[j] += dy[j];
    }
    for (int64_t j = 0; j < n; ++j) {
      const double normal = (static_cast<double>(x[j]) - mean[i]) * r[i], g = static_cast<double>(dy[j]) * weight[j];
      dx[j] = static_cast<T>(r[i] * (g - mean_g - normal * mean_gn));
    }
  }
  std::copy(weight_sums.begin(), weight_sums.end(), dweight);
  std::copy(bias_sums.begin(), bias_sums.end(), dbias);
}

template void layer_norm(const LayerNormShape&, const float*, const float*, const float*, float*, float*, float*);
template void layer_norm(const LayerNormShape&, const double*, const double*, const double*, double*, double*, double*);
template void layer_norm_backward(const LayerNormShape&, const float*, const float*, const float*, const float*,
                                  const float*, float*, float*, float*);
template void layer_norm_backward(const LayerNormShape&, const double*, const double*, const double*, const double*,
                                  const double*, double*, double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
