#pragma once

#include <cstdint>

namespace carousel::kernels {

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;  // decay acts on the weight (AdamW), not through the gradient
  int64_t step;    // from 1
  double gradient_factor = 1;
};

/// One update of n parameters w by their gradients g, with the moments m and v, in a single pass over memory:
///
///   g <- gradient_factor g, rounded as kernels::scale rounds it
///   g <- g + decay w  (coupled)  or  w <- (1 - lr decay) w  (decoupled)
///   m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,  w <- w - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)
///
/// Parallel over fixed ranges; the thread count does not change results. Coefficients are made in double; then about
/// six roundings, relative to the update and to the weight.
void adam(int64_t n, const AdamStep& step, const float* g, float* w, float* m, float* v);
void adam(int64_t n, const AdamStep& step, const double* g, double* w, double* m, double* v);

namespace plain {
template <class T>
void adam(int64_t n, const AdamStep& step, const T* g, T* w, T* m, T* v);
}  // namespace plain

}  // namespace carousel::kernels
