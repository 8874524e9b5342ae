#include <carousel/tensor/kernels/array_dispatch.h>
#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/vector_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

struct Exp {
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D d, hn::Vec<D> x) {
    return exp(d, x);
  }
};
struct Tanh {
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D d, hn::Vec<D> x) {
    return tanh(d, x);
  }
};
struct Sigmoid {
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D d, hn::Vec<D> x) {
    return sigmoid(d, x);
  }
};
struct Softplus {
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D d, hn::Vec<D> x) {
    return softplus(d, x);
  }
};

template <class Function, class T>
void map(int64_t n, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Function::of(d, hn::LoadU(d, x + i)), d, y + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) store_first(Function::of(d, load_first(d, x + i, rest)), d, y + i, rest);
}

template <class T>
void tanh_backward_range(int64_t n, const T* y, const T* dy, T* dx) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, static_cast<T>(1));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(d, y + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), hn::NegMulAdd(value, value, one)), d, dx + i);
  }
  for (; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void exp_float(int64_t n, const float* x, float* y) { map<Exp>(n, x, y); }
void exp_double(int64_t n, const double* x, double* y) { map<Exp>(n, x, y); }
void tanh_float(int64_t n, const float* x, float* y) { map<Tanh>(n, x, y); }
void tanh_double(int64_t n, const double* x, double* y) { map<Tanh>(n, x, y); }
void sigmoid_float(int64_t n, const float* x, float* y) { map<Sigmoid>(n, x, y); }
void sigmoid_double(int64_t n, const double* x, double* y) { map<Sigmoid>(n, x, y); }
void softplus_float(int64_t n, const float* x, float* y) { map<Softplus>(n, x, y); }
void softplus_double(int64_t n, const double* x, double* y) { map<Softplus>(n, x, y); }
void tanh_backward_float(int64_t n, const float* y, const float* dy, float* dx) { tanh_backward_range(n, y, dy, dx); }
void tanh_backward_double(int64_t n, const double* y, const double* dy, double* dx) {
  tanh_backward_range(n, y, dy, dx);
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

#define CAROUSEL_ALL(T)       \
  CAROUSEL_UNARY(exp, T)      \
  CAROUSEL_UNARY(tanh, T)     \
  CAROUSEL_UNARY(sigmoid, T)  \
  CAROUSEL_UNARY(softplus, T) \
  CAROUSEL_BINARY(tanh_backward, T)
CAROUSEL_ALL(float)
CAROUSEL_ALL(double)
#undef CAROUSEL_ALL

namespace plain {

template <class T>
void exp(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}

template <class T>
void tanh(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

template <class T>
void sigmoid(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? std::exp(x[i]) / (1 + std::exp(x[i])) : 1 / (1 + std::exp(-x[i]));
}

template <class T>
void softplus(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] > 0 ? x[i] : 0) + std::log1p(std::exp(-std::abs(x[i])));
}

template <class T>
void tanh_backward(int64_t n, const T* y, const T* dy, T* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

template void exp(int64_t, const float*, float*);
template void exp(int64_t, const double*, double*);
template void tanh(int64_t, const float*, float*);
template void tanh(int64_t, const double*, double*);
template void sigmoid(int64_t, const float*, float*);
template void sigmoid(int64_t, const double*, double*);
template void softplus(int64_t, const float*, float*);
template void softplus(int64_t, const double*, double*);
template void tanh_backward(int64_t, const float*, const float*, float*);
template void tanh_backward(int64_t, const double*, const double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
