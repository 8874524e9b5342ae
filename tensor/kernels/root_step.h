#pragma once

#include <cstdint>

namespace carousel::kernels {

struct RootStep {
  double lr, keep, add, eps;
  double momentum = 0;  // used with a velocity
  double weight_decay = 0;
  double gradient_factor = 1;
};

/// One update of n parameters w by their gradients g over the root of their gathered squares v, in a single pass over
/// memory: RMSprop with keep = alpha, add = 1 - alpha; Adagrad with 1 and 1.
///
///   g <- gradient_factor g, rounded as kernels::scale rounds it;  g <- g + decay w
///   v <- keep v + add g^2,  d = g / (sqrt(v) + eps)
///   w <- w - lr d,  or with a velocity u (null: none)  u <- momentum u + d,  w <- w - lr u
///
/// Parallel over fixed ranges; the thread count does not change results. Constants are made in double; then about six
/// roundings, relative to the update and to the weight.
void root_step(int64_t n, const RootStep& step, const float* g, float* w, float* v, float* u);
void root_step(int64_t n, const RootStep& step, const double* g, double* w, double* v, double* u);

namespace plain {
template <class T>
void root_step(int64_t n, const RootStep& step, const T* g, T* w, T* v, T* u);
}  // namespace plain

}  // namespace carousel::kernels
