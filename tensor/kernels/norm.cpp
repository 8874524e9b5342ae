#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/norm.h>
#include <carousel/tensor/kernels/parallel.h>

#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), x));
}
template <class D>
HWY_INLINE hn::Vec<D> load_doubles(D d, const double* x) {
  return hn::LoadU(d, x);
}

template <class T>
double sum_of_squares_range(int64_t n, const T* x) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;  // four, to hide the latency of one
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto x0 = load_doubles(d, x + i), x1 = load_doubles(d, x + i + lanes);
    const auto x2 = load_doubles(d, x + i + 2 * lanes), x3 = load_doubles(d, x + i + 3 * lanes);
    sum0 = hn::MulAdd(x0, x0, sum0);
    sum1 = hn::MulAdd(x1, x1, sum1);
    sum2 = hn::MulAdd(x2, x2, sum2);
    sum3 = hn::MulAdd(x3, x3, sum3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

template <class T>
void scale_range(int64_t n, T* x, double factor) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, static_cast<T>(factor));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), by), d, x + i);
  for (; i < n; ++i) x[i] *= static_cast<T>(factor);
}

double sum_of_squares_float(int64_t n, const float* x) { return sum_of_squares_range(n, x); }
double sum_of_squares_double(int64_t n, const double* x) { return sum_of_squares_range(n, x); }
void scale_float(int64_t n, float* x, double factor) { scale_range(n, x, factor); }
void scale_double(int64_t n, double* x, double factor) { scale_range(n, x, factor); }

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(sum_of_squares_float);
HWY_EXPORT(sum_of_squares_double);
HWY_EXPORT(scale_float);
HWY_EXPORT(scale_double);

namespace {

/// The sum over ranges of `sum_range`, in the order of the ranges.
template <class T>
double sum_by_ranges(int64_t n, const T* x, double (*sum_range)(int64_t, const T*)) {
  if (n <= elementwise_grain) return sum_range(n, x);
  std::vector<double> sums((n + elementwise_grain - 1) / elementwise_grain);
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    sums[begin / elementwise_grain] = sum_range(end - begin, x + begin);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

double sum_of_squares(int64_t n, const float* x) {
  return sum_by_ranges(n, x, HWY_DYNAMIC_DISPATCH(sum_of_squares_float));
}
double sum_of_squares(int64_t n, const double* x) {
  return sum_by_ranges(n, x, HWY_DYNAMIC_DISPATCH(sum_of_squares_double));
}

void scale(int64_t n, float* x, double factor) {
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(scale_float)(end - begin, x + begin, factor);
  });
}
void scale(int64_t n, double* x, double factor) {
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(scale_double)(end - begin, x + begin, factor);
  });
}

namespace plain {

template <class T>
double sum_of_squares(int64_t n, const T* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

template <class T>
void scale(int64_t n, T* x, double factor) {
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(x[i] * factor);
}

template double sum_of_squares(int64_t, const float*);
template double sum_of_squares(int64_t, const double*);
template void scale(int64_t, float*, double);
template void scale(int64_t, double*, double);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
