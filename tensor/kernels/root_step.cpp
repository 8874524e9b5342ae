#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/root_step.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/root_step.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <carousel/tensor/kernels/simd_partial-inl.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {

template <class T>
struct RootStepBody {
  const RootStep& s;
  const T* g;
  T *w, *v, *u;

  // Parameters from the i-th on, as many as `memory` reaches.
  template <class D, class Memory>
  HWY_INLINE void operator()(D d, int64_t i, const Memory& memory) const {
    const auto lr = hn::Set(d, static_cast<T>(s.lr)), eps = hn::Set(d, static_cast<T>(s.eps));
    const auto keep = hn::Set(d, static_cast<T>(s.keep)), add = hn::Set(d, static_cast<T>(s.add));
    const auto decay = hn::Set(d, static_cast<T>(s.weight_decay));
    const auto weight = memory.load(d, w + i);
    const auto scaled = hn::Mul(memory.load(d, g + i), hn::Set(d, static_cast<T>(s.gradient_factor)));
    const auto gradient = hn::MulAdd(decay, weight, scaled);
    const auto squares = hn::MulAdd(hn::Mul(add, gradient), gradient, hn::Mul(keep, memory.load(d, v + i)));
    memory.store(squares, d, v + i);
    auto direction = hn::Div(gradient, hn::Add(hn::Sqrt(squares), eps));
    if (u != nullptr) {
      direction = hn::MulAdd(hn::Set(d, static_cast<T>(s.momentum)), memory.load(d, u + i), direction);
      memory.store(direction, d, u + i);
    }
    memory.store(hn::NegMulAdd(lr, direction, weight), d, w + i);
  }
};

void root_step_float(int64_t n, const RootStep& s, const float* g, float* w, float* v, float* u) {
  for_each_vector<float>(n, RootStepBody<float>{s, g, w, v, u});
}
void root_step_double(int64_t n, const RootStep& s, const double* g, double* w, double* v, double* u) {
  for_each_vector<double>(n, RootStepBody<double>{s, g, w, v, u});
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(root_step_float);
HWY_EXPORT(root_step_double);

void root_step(int64_t n, const RootStep& step, const float* g, float* w, float* v, float* u) {
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(root_step_float)
    (end - begin, step, g + begin, w + begin, v + begin, u == nullptr ? nullptr : u + begin);
  });
}

void root_step(int64_t n, const RootStep& step, const double* g, double* w, double* v, double* u) {
  parallel_ranges(n, elementwise_grain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(root_step_double)
    (end - begin, step, g + begin, w + begin, v + begin, u == nullptr ? nullptr : u + begin);
  });
}

namespace plain {

template <class T>
void root_step(int64_t n, const RootStep& s, const T* g, T* w, T* v, T* u) {
  for (int64_t i = 0; i < n; ++i) {
    const double gradient = s.gradient_factor * g[i] + s.weight_decay * w[i];
    const double squares = s.keep * v[i] + s.add * gradient * gradient;
    double direction = gradient / (std::sqrt(squares) + s.eps);
    if (u != nullptr) {
      direction += s.momentum * u[i];
      u[i] = static_cast<T>(direction);
    }
    v[i] = static_cast<T>(squares);
    w[i] = static_cast<T>(w[i] - s.lr * direction);
  }
}

template void root_step(int64_t, const RootStep&, const float*, float*, float*, float*);
template void root_step(int64_t, const RootStep&, const double*, double*, double*, double*);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
