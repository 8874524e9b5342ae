#include <carousel/tensor/kernels/activations.h>
#include <carousel/tensor/kernels/array_dispatch.h>
#include <carousel/tensor/kernels/instruction_sets.h>

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/activations.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_math-inl.h>
#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

constexpr double gelu_scale = 1.5957691216057307;  // 2 sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715;

/// s(x) and s(-x) = 1 - s(x), neither of which loses digits to the other.
template <class D>
struct SigmoidPair {
  HWY_INLINE SigmoidPair(D d, hn::Vec<D> x) {
    const auto one = hn::Set(d, static_cast<hn::TFromD<D>>(1));
    const auto e = exp(d, hn::Neg(hn::Abs(x)));
    const auto larger = hn::Div(one, hn::Add(one, e)), smaller = hn::Mul(e, larger);
    const auto negative = hn::Lt(x, hn::Zero(d));
    of_x = hn::IfThenElse(negative, smaller, larger);
    of_minus_x = hn::IfThenElse(negative, larger, smaller);
  }
  hn::Vec<D> of_x, of_minus_x;
};

/// The functions x s(z(x)): z, and x z'.
struct Silu {
  template <class D>
  static HWY_INLINE hn::Vec<D> z(D, hn::Vec<D> x) {
    return x;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> x_slope(D, hn::Vec<D> x) {
    return x;
  }
};
struct Gelu {
  template <class D>
  static HWY_INLINE hn::Vec<D> z(D d, hn::Vec<D> x) {
    return hn::Mul(x, times_square(d, x, gelu_scale * gelu_cubic));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> x_slope(D d, hn::Vec<D> x) {
    return hn::Mul(x, times_square(d, x, 3 * gelu_scale * gelu_cubic));
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> times_square(D d, hn::Vec<D> x, double factor) {  // gelu_scale + factor x^2
    using T = hn::TFromD<D>;
    return hn::MulAdd(hn::Mul(hn::Set(d, static_cast<T>(factor)), x), x, hn::Set(d, static_cast<T>(gelu_scale)));
  }
};

template <class Function, class D>
HWY_INLINE hn::Vec<D> value_of(D d, hn::Vec<D> x) {
  return hn::Mul(x, sigmoid(d, Function::z(d, x)));
}

/// Beyond +-1000 the slope is 0 or 1 to the last bit, and x z' might overflow.
template <class Function, class D>
HWY_INLINE hn::Vec<D> slope_of(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto far = hn::Set(d, static_cast<T>(1000)), one = hn::Set(d, static_cast<T>(1));
  const auto bounded = hn::Min(hn::Max(x, hn::Neg(far)), far);
  const SigmoidPair<D> s(d, Function::z(d, bounded));
  const auto slope = hn::Mul(s.of_x, hn::MulAdd(Function::x_slope(d, bounded), s.of_minus_x, one));
  return keep_nan<D>(x, slope);
}

template <class Function, class T>
struct Forward {
  const T* x;
  T* y;
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, Memory memory) const {
    memory.store(value_of<Function>(d, memory.load(d, x + i)), d, y + i);
  }
};

template <class Function, class T>
struct Backward {
  const T *x, *dy;
  T* dx;
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, Memory memory) const {
    memory.store(hn::Mul(memory.load(d, dy + i), slope_of<Function>(d, memory.load(d, x + i))), d, dx + i);
  }
};

template <class T>
struct SoftplusBackward {
  const T *x, *dy;
  T* dx;
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, Memory memory) const {
    memory.store(hn::Mul(memory.load(d, dy + i), sigmoid(d, memory.load(d, x + i))), d, dx + i);
  }
};

template <class T>
struct Gate {
  const T *y, *z;
  T* out;
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, Memory memory) const {
    memory.store(hn::Mul(memory.load(d, y + i), value_of<Silu>(d, memory.load(d, z + i))), d, out + i);
  }
};

template <class T>
struct GateBackward {
  const T *y, *z, *dout;
  T *dy, *dz;
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, Memory memory) const {
    const auto value = memory.load(d, y + i), gate = memory.load(d, z + i), gradient = memory.load(d, dout + i);
    memory.store(hn::Mul(gradient, value_of<Silu>(d, gate)), d, dy + i);
    memory.store(hn::Mul(hn::Mul(gradient, value), slope_of<Silu>(d, gate)), d, dz + i);
  }
};

#define CAROUSEL_TARGET(T)                                                                                     \
  void silu_##T(int64_t n, const T* x, T* y) { for_each_vector<T>(n, Forward<Silu, T>{x, y}); }                \
  void gelu_##T(int64_t n, const T* x, T* y) { for_each_vector<T>(n, Forward<Gelu, T>{x, y}); }                \
  void silu_backward_##T(int64_t n, const T* x, const T* dy, T* dx) {                                          \
    for_each_vector<T>(n, Backward<Silu, T>{x, dy, dx});                                                       \
  }                                                                                                            \
  void gelu_backward_##T(int64_t n, const T* x, const T* dy, T* dx) {                                          \
    for_each_vector<T>(n, Backward<Gelu, T>{x, dy, dx});                                                       \
  }                                                                                                            \
  void softplus_backward_##T(int64_t n, const T* x, const T* dy, T* dx) {                                      \
    for_each_vector<T>(n, SoftplusBackward<T>{x, dy, dx});                                                     \
  }                                                                                                            \
  void silu_gate_##T(int64_t n, const T* y, const T* z, T* out) { for_each_vector<T>(n, Gate<T>{y, z, out}); } \
  void silu_gate_backward_##T(int64_t n, const T* y, const T* z, const T* dout, T* dy, T* dz) {                \
    for_each_vector<T>(n, GateBackward<T>{y, z, dout, dy, dz});                                                \
  }
CAROUSEL_TARGET(float)
CAROUSEL_TARGET(double)
#undef CAROUSEL_TARGET

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

#define CAROUSEL_ALL(T)                                                                     \
  CAROUSEL_UNARY(silu, T)                                                                   \
  CAROUSEL_UNARY(gelu, T)                                                                   \
  CAROUSEL_BINARY(silu_backward, T)                                                         \
  CAROUSEL_BINARY(gelu_backward, T)                                                         \
  CAROUSEL_BINARY(softplus_backward, T)                                                     \
  CAROUSEL_BINARY(silu_gate, T)                                                             \
  HWY_EXPORT(silu_gate_backward_##T);                                                       \
  void silu_gate_backward(int64_t n, const T* y, const T* z, const T* dout, T* dy, T* dz) { \
    parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {                 \
      HWY_DYNAMIC_DISPATCH(silu_gate_backward_##T)                                          \
      (end - begin, y + begin, z + begin, dout + begin, dy + begin, dz + begin);            \
    });                                                                                     \
  }
CAROUSEL_ALL(float)
CAROUSEL_ALL(double)
#undef CAROUSEL_ALL

namespace plain {
namespace {

/// s(x): a definition, good on both sides.
template <class T>
T sigmoid_of(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

template <class T>
T gelu_argument(T x) {
  return static_cast<T>(1.5957691216057307) * (x + static_cast<T>(0.044715) * x * x * x);
}

template <class T>
T silu_slope(T x) {
  const T bounded = x < -1000 ? -1000 : x > 1000 ? 1000 : x;
  return sigmoid_of(x) * (1 + bounded * sigmoid_of(-bounded));
}

template <class T>
T gelu_slope(T x) {
  const T near = x < -1000 ? -1000 : x > 1000 ? 1000 : x;
  const T x_dz = static_cast<T>(1.5957691216057307) * (near + static_cast<T>(3 * 0.044715) * near * near * near);
  return sigmoid_of(gelu_argument(near)) * (1 + x_dz * sigmoid_of(-gelu_argument(near)));
}

}  // namespace

template <class T>
void silu(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid_of(x[i]);
}

template <class T>
void gelu(int64_t n, const T* x, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * sigmoid_of(gelu_argument(x[i]));
}

template <class T>
void silu_backward(int64_t n, const T* x, const T* dy, T* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * silu_slope(x[i]);
}

template <class T>
void gelu_backward(int64_t n, const T* x, const T* dy, T* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * gelu_slope(x[i]);
}

template <class T>
void softplus_backward(int64_t n, const T* x, const T* dy, T* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * sigmoid_of(x[i]);
}

template <class T>
void silu_gate(int64_t n, const T* y, const T* z, T* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (z[i] * sigmoid_of(z[i]));
}

template <class T>
void silu_gate_backward(int64_t n, const T* y, const T* z, const T* dout, T* dy, T* dz) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = y[i], gate = z[i], gradient = dout[i];
    dy[i] = gradient * (gate * sigmoid_of(gate));
    dz[i] = gradient * value * silu_slope(gate);
  }
}

#define CAROUSEL_PLAIN(T)                                           \
  template void silu(int64_t, const T*, T*);                        \
  template void gelu(int64_t, const T*, T*);                        \
  template void silu_backward(int64_t, const T*, const T*, T*);     \
  template void gelu_backward(int64_t, const T*, const T*, T*);     \
  template void softplus_backward(int64_t, const T*, const T*, T*); \
  template void silu_gate(int64_t, const T*, const T*, T*);         \
  template void silu_gate_backward(int64_t, const T*, const T*, const T*, T*, T*);
CAROUSEL_PLAIN(float)
CAROUSEL_PLAIN(double)
#undef CAROUSEL_PLAIN

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
