#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/softmax_cross_entropy.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/softmax_cross_entropy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class T>
T maximum(int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr T nothing = -std::numeric_limits<T>::infinity();
  auto largest = hn::Set(d, nothing);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::LoadU(d, x + i));
  if (i < n) largest = hn::Max(largest, load_first(d, x + i, static_cast<size_t>(n - i), nothing));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

/// p = exp(x - shift), not normalised; returns its sum. Short stretches are summed in T and added up in double.
template <class T>
double shifted_exp(int64_t n, const T* x, T shift, T* p) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto offset = hn::Set(d, shift);
  const int64_t stretch = 32 * lanes;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += stretch) {
    const int64_t end = std::min(n, begin + stretch);
    auto sum = hn::Zero(d);
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      const auto power = exp(d, hn::Sub(hn::LoadU(d, x + i), offset));
      hn::StoreU(power, d, p + i);
      sum = hn::Add(sum, power);
    }
    if (i < end) {
      const auto rest = static_cast<size_t>(end - i);
      const auto logits = load_first(d, x + i, rest, -std::numeric_limits<T>::infinity());
      const auto power = exp(d, hn::Sub(logits, offset));  // 0 in the lanes that are not there
      store_first(power, d, p + i, rest);
      sum = hn::Add(sum, power);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  return total;
}

template <class T>
void multiply_row(int64_t n, T factor, T* p) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, p + i), by), d, p + i);
  for (; i < n; ++i) p[i] *= factor;
}

template <class T>
T softmax_row(int64_t n, const T* x, int64_t target, T* p) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T largest = maximum(n, x);
  const T shift = largest == -infinity ? 0 : largest;
  const double sum = shifted_exp(n, x, shift, p);
  if (sum == 0) return infinity;  // nothing but -inf; p is zero already
  multiply_row(n, static_cast<T>(1 / sum), p);
  return static_cast<T>(std::log(sum) - (static_cast<double>(x[target]) - shift));
}

float softmax_row_float(int64_t n, const float* x, int64_t target, float* p) { return softmax_row(n, x, target, p); }
double softmax_row_double(int64_t n, const double* x, int64_t target, double* p) {
  return softmax_row(n, x, target, p);
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(softmax_row_float);
HWY_EXPORT(softmax_row_double);

namespace {

float softmax_row(int64_t n, const float* x, int64_t target, float* p) {
  return HWY_DYNAMIC_DISPATCH(softmax_row_float)(n, x, target, p);
}
double softmax_row(int64_t n, const double* x, int64_t target, double* p) {
  return HWY_DYNAMIC_DISPATCH(softmax_row_double)(n, x, target, p);
}

/// Rows that make up a range for one thread.
int64_t row_grain(int64_t classes) { return std::max<int64_t>(1, elementwise_grain / 2 / (1 + classes)); }

template <class T>
void softmax_rows(int64_t rows, int64_t classes, const T* x, const int64_t* target, std::optional<int64_t> ignore,
                  T* loss, T* p) {
  parallel_ranges(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (target[r] == ignore) {
        std::fill_n(p + r * classes, classes, T{0});
        loss[r] = 0;
      } else {
        loss[r] = softmax_row(classes, x + r * classes, target[r], p + r * classes);
      }
    }
  });
}

}  // namespace

void softmax_cross_entropy(int64_t rows, int64_t classes, const float* x, const int64_t* target,
                           std::optional<int64_t> ignore, float* loss, float* p) {
  softmax_rows(rows, classes, x, target, ignore, loss, p);
}
void softmax_cross_entropy(int64_t rows, int64_t classes, const double* x, const int64_t* target,
                           std::optional<int64_t> ignore, double* loss, double* p) {
  softmax_rows(rows, classes, x, target, ignore, loss, p);
}

template <class T>
void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const T* p, const int64_t* target,
                                    std::optional<int64_t> ignore, const T* dloss, T* dx) {
  parallel_ranges(rows, row_grain(classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const row = p + r * classes;
      T* const to = dx + r * classes;
      if (target[r] == ignore) {
        std::fill_n(to, classes, T{0});
        continue;
      }
      const T scale = dloss[r], at_target = scale * (row[target[r]] - 1);
      for (int64_t j = 0; j < classes; ++j) to[j] = scale * row[j];
      to[target[r]] = at_target;
    }
  });
}

template void softmax_cross_entropy_backward(int64_t, int64_t, const float*, const int64_t*, std::optional<int64_t>,
                                             const float*, float*);
template void softmax_cross_entropy_backward(int64_t, int64_t, const double*, const int64_t*, std::optional<int64_t>,
                                             const double*, double*);

namespace plain {

template <class T>
void softmax_cross_entropy(int64_t rows, int64_t classes, const T* x, const int64_t* target,
                           std::optional<int64_t> ignore, T* loss, T* p) {
  for (int64_t r = 0; r < rows; ++r, x += classes, p += classes) {
    loss[r] = 0;
    std::fill_n(p, classes, T{0});
    if (target[r] == ignore) continue;
    const double largest = *std::max_element(x, x + classes);
    const double shift = std::isinf(largest) && largest < 0 ? 0 : largest;
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) sum += std::exp(x[j] - shift);
    for (int64_t j = 0; j < classes && sum != 0; ++j) p[j] = static_cast<T>(std::exp(x[j] - shift) / sum);
    loss[r] = sum == 0 ? std::numeric_limits<T>::infinity() : static_cast<T>(std::log(sum) - (x[target[r]] - shift));
  }
}

template <class T>
void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const T* p, const int64_t* target,
                                    std::optional<int64_t> ignore, const T* dloss, T* dx) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < classes; ++j) {
      const int64_t at = r * classes + j;
      dx[at] = target[r] == ignore ? 0 : dloss[r] * (p[at] - (j == target[r] ? 1 : 0));
    }
  }
}

template void softmax_cross_entropy(int64_t, int64_t, const float*, const int64_t*, std::optional<int64_t>, float*,
                                    float*);
template void softmax_cross_entropy(int64_t, int64_t, const double*, const int64_t*, std::optional<int64_t>, double*,
                                    double*);
template void softmax_cross_entropy_backward(int64_t, int64_t, const float*, const int64_t*, std::optional<int64_t>,
                                             const float*, float*);
template void softmax_cross_entropy_backward(int64_t, int64_t, const double*, const int64_t*, std::optional<int64_t>,
                                             const double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
