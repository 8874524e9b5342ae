#include <carousel/tensor/kernels/attention_rows.h>
#include <carousel/tensor/kernels/instruction_sets.h>

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/attention_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// exp as in simd_math-inl.h for a number that is not far above 0: 0 where that would be below
/// about 2^-126.5, and no more than
/// 2^127. The larger operand of Min and Max comes first because they return the second when one is NaN.
template <class D>
HWY_INLINE hn::Vec<D> small_exp(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  constexpr bool single = sizeof(T) == sizeof(float);
  const auto lowest =
      hn::Set(d, single ? -88 : -709);  // 2^-127: the exponent's bits are all 0 then, and so is the power
  const auto highest = hn::Set(d, single ? 88 : 709);
  const auto bounded = hn::Max(lowest, hn::Min(highest, x));
  const auto n = binary_exponent(d, bounded);
  const auto reduced = hn::Add(reduced_expm1(d, bounded, n), hn::Set(d, static_cast<T>(1)));
  return hn::Mul(reduced, power_of_two(d, n));
}

/// The first `count` lanes of x, `filler` in the others.
template <class D>
HWY_INLINE hn::Vec<D> first_lanes(D d, int64_t count, hn::Vec<D> x, hn::TFromD<D> filler) {
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), x, hn::Set(d, filler));
}

template <class D, class T>
HWY_INLINE void clear(D d, T* row, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) hn::Store(hn::Zero(d), d, row + i);
}

/// -inf when there is none; where one is NaN, the result may be. Whole vectors are read.
template <class D, class T>
HWY_INLINE T largest(D d, int64_t n, const T* x) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Set(d, -infinity<T>), odd = even;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = hn::Max(hn::Load(d, x + i), even);
    odd = hn::Max(hn::Load(d, x + i + lanes), odd);
  }
  for (; i < n; i += lanes) {
    const auto value = hn::Load(d, x + i);
    even = hn::Max(n - i < lanes ? first_lanes(d, n - i, value, -infinity<T>) : value, even);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd)));
}

/// x <- exp(x - shift) for n numbers, then zeros; returns the sum.
template <class D, class T>
HWY_INLINE T exp_and_sum(D d, int64_t n, int64_t columns, T shift, T* x) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shifts = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = small_exp(d, hn::Sub(hn::Load(d, x + i), shifts));
    hn::Store(value, d, x + i);
    sum = hn::Add(sum, value);
  }
  if (i < n) {
    const auto value = first_lanes(d, n - i, small_exp(d, hn::Sub(hn::Load(d, x + i), shifts)), 0);
    hn::Store(value, d, x + i);
    sum = hn::Add(sum, value);
    i += lanes;
  }
  clear(d, x, i, columns);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void multiply(int64_t n, T factor, T* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

template <class T>
void take_scores_of(const ScoreTile<T>& scores, const RunningSoftmax<T>& so_far) {
  const hn::ScalableTag<T> d;
  constexpr int64_t rows_at_once = 8;  // whose maxima the exponentials do not wait for
  for (int64_t first = 0; first < scores.rows; first += rows_at_once) {
    const int64_t last = std::min(scores.rows, first + rows_at_once);
    for (int64_t r = first; r < last; ++r) {
      const T before = so_far.most[r], most = std::max(before, largest(d, scores.end(r), scores.row(r)));
      so_far.most[r] = most;
      if (most == before || before == -infinity<T>) continue;  // nothing to shrink
      const T shrink = std::exp(before - most);
      so_far.total[r] *= shrink;
      multiply(so_far.width, shrink, so_far.values + r * so_far.width);
    }
    for (int64_t r = first; r < last; ++r) {
      const T shift = so_far.most[r] == -infinity<T> ? 0 : so_far.most[r];
      so_far.total[r] += exp_and_sum(d, scores.end(r), scores.columns, shift, scores.row(r));
    }
  }
}

template <class T>
void end_softmax_of(int64_t count, const RunningSoftmax<T>& so_far, T* y, int64_t stride, T* lse) {
  for (int64_t r = 0; r < count; ++r) {
    const T total = static_cast<T>(so_far.total[r]), factor = total == 0 ? 0 : 1 / total;
    lse[r] = so_far.most[r] + std::log(total);
    for (int64_t i = 0; i < so_far.width; ++i) y[r * stride + i] = so_far.values[r * so_far.width + i] * factor;
  }
}

template <class T>
void softmax_gradient_of(const ScoreTile<T>& tile, T* dp_data, T scale, const T* lse, const T* delta) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scales = hn::Set(d, scale);
  for (int64_t r = 0; r < tile.rows; ++r) {
    T *const s = tile.row(r), *const dp = dp_data + r * tile.stride;
    const auto shift = hn::Set(d, lse[r] == -infinity<T> ? infinity<T> : lse[r]), centre = hn::Set(d, scale * delta[r]);
    const int64_t n = tile.end(r);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto p = small_exp(d, hn::Sub(hn::Load(d, s + i), shift));
      hn::Store(p, d, s + i);
      hn::Store(hn::Mul(p, hn::MulSub(hn::Load(d, dp + i), scales, centre)), d, dp + i);
    }
    if (i < n) {
      const auto p = small_exp(d, hn::Sub(hn::Load(d, s + i), shift));
      hn::Store(first_lanes(d, n - i, p, 0), d, s + i);
      hn::Store(first_lanes(d, n - i, hn::Mul(p, hn::MulSub(hn::Load(d, dp + i), scales, centre)), 0), d, dp + i);
      i += lanes;
    }
    clear(d, s, i, tile.columns);
    clear(d, dp, i, tile.columns);
  }
}

template <class T>
void dot_rows_of(int64_t rows, int64_t width, const T* x, int64_t x_stride, const T* row, int64_t stride, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, x += x_stride, row += stride) {
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
void scale_rows_of(int64_t rows, int64_t width, T factor, const T* from, int64_t stride, T* to, int64_t to_stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factors = hn::Set(d, factor);
  for (int64_t r = 0; r < rows; ++r, from += stride, to += to_stride) {
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, from + i), factors), d, to + i);
    for (; i < width; ++i) to[i] = from[i] * factor;
  }
}

template <class T>
bool rows_finite_of(int64_t rows, int64_t width, const T* row, int64_t stride) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = hn::Zero(d);  // 0 x is NaN when x is not finite
  T rest = 0;
  for (int64_t r = 0; r < rows; ++r, row += stride) {
    int64_t i = 0;
    for (; i + 2 * lanes <= width; i += 2 * lanes) {
      even = hn::MulAdd(hn::LoadU(d, row + i), hn::Zero(d), even);
      odd = hn::MulAdd(hn::LoadU(d, row + i + lanes), hn::Zero(d), odd);
    }
    for (; i < width; ++i) rest += row[i] * 0;
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))) + rest == 0;
}

#define CAROUSEL_ROWS(type)                                                                                          \
  void take_scores_##type(const ScoreTile<type>& scores, const RunningSoftmax<type>& so_far) {                       \
    take_scores_of(scores, so_far);                                                                                  \
  }                                                                                                                  \
  void end_softmax_##type(int64_t n, const RunningSoftmax<type>& so_far, type* y, int64_t stride, type* lse) {       \
    end_softmax_of(n, so_far, y, stride, lse);                                                                       \
  }                                                                                                                  \
  void softmax_gradient_##type(const ScoreTile<type>& s, type* dp, type scale, const type* lse, const type* delta) { \
    softmax_gradient_of(s, dp, scale, lse, delta);                                                                   \
  }                                                                                                                  \
  void dot_rows_##type(int64_t n, int64_t width, const type* x, int64_t x_stride, const type* row, int64_t stride,   \
                       type* out) {                                                                                  \
    dot_rows_of(n, width, x, x_stride, row, stride, out);                                                            \
  }                                                                                                                  \
  void add_rows_##type(int64_t n, int64_t width, const type* w, const type* row, int64_t stride, type* sum) {        \
    add_rows_of(n, width, w, row, stride, sum);                                                                      \
  }                                                                                                                  \
  void scale_rows_##type(int64_t n, int64_t width, type factor, const type* from, int64_t stride, type* to,          \
                         int64_t to_stride) {                                                                        \
    scale_rows_of(n, width, factor, from, stride, to, to_stride);                                                    \
  }                                                                                                                  \
  bool rows_finite_##type(int64_t n, int64_t width, const type* row, int64_t stride) {                               \
    return rows_finite_of(n, width, row, stride);                                                                    \
  }
CAROUSEL_ROWS(float)
CAROUSEL_ROWS(double)
#undef CAROUSEL_ROWS

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

#define CAROUSEL_ROWS(type)                                                                                     \
  HWY_EXPORT(take_scores_##type);                                                                               \
  HWY_EXPORT(end_softmax_##type);                                                                               \
  HWY_EXPORT(softmax_gradient_##type);                                                                          \
  HWY_EXPORT(dot_rows_##type);                                                                                  \
  HWY_EXPORT(add_rows_##type);                                                                                  \
  HWY_EXPORT(scale_rows_##type);                                                                                \
  HWY_EXPORT(rows_finite_##type);                                                                               \
  void take_scores(const ScoreTile<type>& scores, const RunningSoftmax<type>& so_far) {                         \
    HWY_DYNAMIC_DISPATCH(take_scores_##type)(scores, so_far);                                                   \
  }                                                                                                             \
  void end_softmax(int64_t n, const RunningSoftmax<type>& so_far, type* y, int64_t stride, type* lse) {         \
    HWY_DYNAMIC_DISPATCH(end_softmax_##type)(n, so_far, y, stride, lse);                                        \
  }                                                                                                             \
  void softmax_gradient(const ScoreTile<type>& s, type* dp, type scale, const type* lse, const type* delta) {   \
    HWY_DYNAMIC_DISPATCH(softmax_gradient_##type)(s, dp, scale, lse, delta);                                    \
  }                                                                                                             \
  void dot_rows(int64_t rows, int64_t width, const type* x, int64_t x_stride, const type* row, int64_t stride,  \
                type* out) {                                                                                    \
    HWY_DYNAMIC_DISPATCH(dot_rows_##type)(rows, width, x, x_stride, row, stride, out);                          \
  }                                                                                                             \
  void add_rows(int64_t rows, int64_t width, const type* weights, const type* row, int64_t stride, type* sum) { \
    HWY_DYNAMIC_DISPATCH(add_rows_##type)(rows, width, weights, row, stride, sum);                              \
  }                                                                                                             \
  void scale_rows(int64_t rows, int64_t width, type factor, const type* from, int64_t stride, type* to,         \
                  int64_t to_stride) {                                                                          \
    HWY_DYNAMIC_DISPATCH(scale_rows_##type)(rows, width, factor, from, stride, to, to_stride);                  \
  }                                                                                                             \
  bool rows_finite(int64_t rows, int64_t width, const type* row, int64_t stride) {                              \
    return HWY_DYNAMIC_DISPATCH(rows_finite_##type)(rows, width, row, stride);                                  \
  }
CAROUSEL_ROWS(float)
CAROUSEL_ROWS(double)
#undef CAROUSEL_ROWS

}  // namespace carousel::kernels
#endif  // HWY_ONCE
