#include <carousel/tensor/kernels/adam.h>
#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/parallel.h>

#include <cmath>

#ifndef CAROUSEL_ADAM_COEFFICIENTS  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_ADAM_COEFFICIENTS
namespace carousel::kernels {

/// The step's constants in the parameters' type.
template <class T>
struct AdamCoefficients {
  explicit AdamCoefficients(const AdamStep& s)
      : gradient_factor(static_cast<T>(s.gradient_factor)),
        coupled_decay(static_cast<T>(s.decoupled ? 0 : s.weight_decay)),
        shrink(static_cast<T>(s.decoupled ? 1 - s.lr * s.weight_decay : 1)),
        first(static_cast<T>(1 - s.beta1)),
        keep_second(static_cast<T>(s.beta2)),
        second(static_cast<T>(1 - s.beta2)),
        rate(static_cast<T>(s.lr / (1 - std::pow(s.beta1, s.step)))),
        root_scale(static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, s.step)))),
        eps(static_cast<T>(s.eps)) {}

  T gradient_factor, coupled_decay, shrink, first, keep_second, second, rate, root_scale, eps;
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/adam.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class D, class T>
HWY_INLINE void adam_vector(D d, const AdamCoefficients<T>& c, hn::Vec<D> g, hn::Vec<D>& w, hn::Vec<D>& m,
                            hn::Vec<D>& v) {
  g = hn::Mul(g, hn::Set(d, c.gradient_factor));
  g = hn::MulAdd(hn::Set(d, c.coupled_decay), w, g);
  m = hn::MulAdd(hn::Set(d, c.first), hn::Sub(g, m), m);
  v = hn::MulAdd(hn::Mul(hn::Set(d, c.second), g), g, hn::Mul(hn::Set(d, c.keep_second), v));
  const auto root = hn::MulAdd(hn::Sqrt(v), hn::Set(d, c.root_scale), hn::Set(d, c.eps));
  const auto change = hn::Div(hn::Mul(hn::Set(d, c.rate), m), root);
  w = hn::Sub(hn::Mul(w, hn::Set(d, c.shrink)), change);
}

template <class T>
void adam_range(int64_t n, const AdamCoefficients<T>& c, const T* g, T* w, T* m, T* v) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto weight = hn::LoadU(d, w + i), first = hn::LoadU(d, m + i), second = hn::LoadU(d, v + i);
    adam_vector(d, c, hn::LoadU(d, g + i), weight, first, second);
    hn::StoreU(weight, d, w + i);
    hn::StoreU(first, d, m + i);
    hn::StoreU(second, d, v + i);
  }
  if (i == n) return;
  const auto rest = static_cast<size_t>(n - i);
  auto weight = load_first(d, w + i, rest), first = load_first(d, m + i, rest), second = load_first(d, v + i, rest);
  adam_vector(d, c, load_first(d, g + i, rest), weight, first, second);
  store_first(weight, d, w + i, rest);
  store_first(first, d, m + i, rest);
  store_first(second, d, v + i, rest);
}

void adam_float(int64_t n, const AdamCoefficients<float>& c, const float* g, float* w, float* m, float* v) {
  adam_range(n, c, g, w, m, v);
}
void adam_double(int64_t n, const AdamCoefficients<double>& c, const double* g, double* w, double* m, double* v) {
  adam_range(n, c, g, w, m, v);
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(adam_float);
HWY_EXPORT(adam_double);

void adam(int64_t n, const AdamStep& step, const float* g, float* w, float* m, float* v) {
  const AdamCoefficients<float> c(step);
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adam_float)(end - begin, c, g + begin, w + begin, m + begin, v + begin);
  });
}

void adam(int64_t n, const AdamStep& step, const double* g, double* w, double* m, double* v) {
  const AdamCoefficients<double> c(step);
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adam_double)(end - begin, c, g + begin, w + begin, m + begin, v + begin);
  });
}

namespace plain {

template <class T>
void adam(int64_t n, const AdamStep& s, const T* g, T* w, T* m, T* v) {
  for (int64_t i = 0; i < n; ++i) {
    const double gradient = s.gradient_factor * g[i] + (s.decoupled ? 0 : s.weight_decay * w[i]);
    const double weight = s.decoupled ? w[i] - s.lr * s.weight_decay * w[i] : w[i];
    const double first = s.beta1 * m[i] + (1 - s.beta1) * gradient;
    const double second = s.beta2 * v[i] + (1 - s.beta2) * gradient * gradient;
    const double unbiased_first = first / (1 - std::pow(s.beta1, s.step));
    const double unbiased_second = second / (1 - std::pow(s.beta2, s.step));
    m[i] = static_cast<T>(first);
    v[i] = static_cast<T>(second);
    w[i] = static_cast<T>(weight - s.lr * unbiased_first / (std::sqrt(unbiased_second) + s.eps));
  }
}

template void adam(int64_t, const AdamStep&, const float*, float*, float*, float*);
template void adam(int64_t, const AdamStep&, const double*, double*, double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
