#include <carousel/tensor/kernels/attention_rows.h>
#include <carousel/tensor/kernels/instruction_sets.h>

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/attention_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

template <class T>
T largest_of(int64_t n, const T* x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Set(d, -infinity<T>);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    most = hn::IfThenElse(hn::Gt(value, most), value, most);  // false for NaN
  }
  T result = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

template <class T>
T exp_and_sum_of(int64_t n, T shift, T* x) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shifts = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = exp(d, hn::Sub(hn::LoadU(d, x + i), shifts));
    hn::StoreU(value, d, x + i);
    sum = hn::Add(sum, value);
  }
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    const auto value = exp(d, hn::Sub(load_first(d, x + i, rest, -infinity<T>), shifts));
    store_first(value, d, x + i, rest);
    sum = hn::Add(sum, value);  // exp(-inf) = 0 in the lanes that are not there
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class D, class V>
HWY_INLINE V probability(D d, V s, V lse) {
  using T = hn::TFromD<D>;
  const auto nothing_seen = hn::Eq(lse, hn::Set(d, -infinity<T>));
  return exp(d, hn::Sub(s, hn::IfThenElse(nothing_seen, hn::Set(d, infinity<T>), lse)));
}

template <class T>
void softmax_gradient_of(int64_t n, const T* lse, const T* delta, int64_t step, T* s, T* dp) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool own = step != 0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto p = probability(d, hn::LoadU(d, s + i), own ? hn::LoadU(d, lse + i) : hn::Set(d, *lse));
    const auto centre = own ? hn::LoadU(d, delta + i) : hn::Set(d, *delta);
    hn::StoreU(p, d, s + i);
    hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, dp + i), centre)), d, dp + i);
  }
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    const auto p = probability(d, load_first(d, s + i, rest), own ? load_first(d, lse + i, rest) : hn::Set(d, *lse));
    const auto centre = own ? load_first(d, delta + i, rest) : hn::Set(d, *delta);
    store_first(p, d, s + i, rest);
    store_first(hn::Mul(p, hn::Sub(load_first(d, dp + i, rest), centre)), d, dp + i, rest);
  }
}

template <class T>
void dot_rows_of(int64_t rows, int64_t width, const T* x, const T* row, int64_t stride, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    auto even = hn::Zero(d), odd = hn::Zero(d);
    int64_t i = 0;
    for (; i + 2 * lanes <= width; i += 2 * lanes) {
      even = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, row + i), even);
      odd = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, row + i + lanes), odd);
    }
    T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    for (; i < width; ++i) sum += x[i] * row[i];
    out[r] = sum;
  }
}

template <class T>
void add_rows_of(int64_t rows, int64_t width, const T* weights, const T* row, int64_t stride, T* sum) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= width; i += 2 * lanes) {  // a strip of columns stays in registers over all rows
    auto low = hn::LoadU(d, sum + i), high = hn::LoadU(d, sum + i + lanes);
    for (int64_t r = 0; r < rows; ++r) {
      const auto weight = hn::Set(d, weights[r]);
      low = hn::MulAdd(weight, hn::LoadU(d, row + r * stride + i), low);
      high = hn::MulAdd(weight, hn::LoadU(d, row + r * stride + i + lanes), high);
    }
    hn::StoreU(low, d, sum + i);
    hn::StoreU(high, d, sum + i + lanes);
  }
  for (int64_t r = 0; r < rows && i < width; ++r) {
    for (int64_t j = i; j < width; ++j) sum[j] += weights[r] * row[r * stride + j];
  }
}

template <class T>
bool rows_finite_of(int64_t rows, int64_t width, const T* row, int64_t stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto vanishing = hn::Zero(d);  // 0 x is NaN when x is not finite
  T rest = 0;
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) {
      vanishing = hn::MulAdd(hn::LoadU(d, row + i), hn::Zero(d), vanishing);
    }
    for (; i < width; ++i) rest += row[i] * 0;
  }
  return hn::GetLane(hn::SumOfLanes(d, vanishing)) + rest == 0;
}

#define CAROUSEL_ROWS(type)                                                                                      \
  type largest_##type(int64_t n, const type* x) { return largest_of(n, x); }                                     \
  type exp_and_sum_##type(int64_t n, type shift, type* x) { return exp_and_sum_of(n, shift, x); }                \
  void softmax_gradient_##type(int64_t n, const type* lse, const type* delta, int64_t step, type* s, type* dp) { \
    softmax_gradient_of(n, lse, delta, step, s, dp);                                                             \
  }                                                                                                              \
  void dot_rows_##type(int64_t n, int64_t width, const type* x, const type* row, int64_t stride, type* out) {    \
    dot_rows_of(n, width, x, row, stride, out);                                                                  \
  }                                                                                                              \
  void add_rows_##type(int64_t n, int64_t width, const type* w, const type* row, int64_t stride, type* sum) {    \
    add_rows_of(n, width, w, row, stride, sum);                                                                  \
  }                                                                                                              \
  bool rows_finite_##type(int64_t n, int64_t width, const type* row, int64_t stride) {                           \
    return rows_finite_of(n, width, row, stride);                                                                \
  }
CAROUSEL_ROWS(float)
CAROUSEL_ROWS(double)
#undef CAROUSEL_ROWS

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

#define CAROUSEL_ROWS(type)                                                                                          \
  HWY_EXPORT(largest_##type);                                                                                        \
  HWY_EXPORT(exp_and_sum_##type);                                                                                    \
  HWY_EXPORT(softmax_gradient_##type);                                                                               \
  HWY_EXPORT(dot_rows_##type);                                                                                       \
  HWY_EXPORT(add_rows_##type);                                                                                       \
  HWY_EXPORT(rows_finite_##type);                                                                                    \
  type largest(int64_t n, const type* x) { return HWY_DYNAMIC_DISPATCH(largest_##type)(n, x); }                      \
  type exp_and_sum(int64_t n, type shift, type* x) { return HWY_DYNAMIC_DISPATCH(exp_and_sum_##type)(n, shift, x); } \
  void softmax_gradient(int64_t n, const type* lse, const type* delta, int64_t step, type* s, type* dp) {            \
    HWY_DYNAMIC_DISPATCH(softmax_gradient_##type)(n, lse, delta, step, s, dp);                                       \
  }                                                                                                                  \
  void dot_rows(int64_t rows, int64_t width, const type* x, const type* row, int64_t stride, type* out) {            \
    HWY_DYNAMIC_DISPATCH(dot_rows_##type)(rows, width, x, row, stride, out);                                         \
  }                                                                                                                  \
  void add_rows(int64_t rows, int64_t width, const type* weights, const type* row, int64_t stride, type* sum) {      \
    HWY_DYNAMIC_DISPATCH(add_rows_##type)(rows, width, weights, row, stride, sum);                                   \
  }                                                                                                                  \
  bool rows_finite(int64_t rows, int64_t width, const type* row, int64_t stride) {                                   \
    return HWY_DYNAMIC_DISPATCH(rows_finite_##type)(rows, width, row, stride);                                       \
  }
CAROUSEL_ROWS(float)
CAROUSEL_ROWS(double)
#undef CAROUSEL_ROWS

}  // namespace carousel::kernels
#endif  // HWY_ONCE
