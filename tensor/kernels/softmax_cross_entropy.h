#pragma once

#include <cstdint>
#include <optional>

/// Cross-entropy of rows of logits with the softmax that backward needs, each row read once from memory.
///
///   p = softmax(x),  loss = -log p[target] = log sum_j exp(x_j - max x) - (x_target - max x)
///   backward  dx = dloss (p - onehot(target))
///
/// Layout: x, p, dx [rows, classes] without gaps, target, loss and dloss [rows]. A row whose target is `ignore` has
/// loss 0, p = 0 and dx = 0; other targets are in [0, classes). A row of nothing but -inf has p = 0 and loss +inf; NaN
/// in a row makes its loss and its p NaN.
///
/// The offset is taken off before anything is summed, and the rest is in double: rows of large equal logits lose
/// nothing. Relative error of p at most 8e-6 in float and 2e-14 in double, absolute error of the loss the same plus its
/// rounding. Parallel over rows; the thread count does not change results.
namespace carousel::kernels {

void softmax_cross_entropy(int64_t rows, int64_t classes, const float* x, const int64_t* target,
                           std::optional<int64_t> ignore, float* loss, float* p);
void softmax_cross_entropy(int64_t rows, int64_t classes, const double* x, const int64_t* target,
                           std::optional<int64_t> ignore, double* loss, double* p);

/// dx may be p.
template <class T>
void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const T* p, const int64_t* target,
                                    std::optional<int64_t> ignore, const T* dloss, T* dx);

namespace plain {
template <class T>
void softmax_cross_entropy(int64_t rows, int64_t classes, const T* x, const int64_t* target,
                           std::optional<int64_t> ignore, T* loss, T* p);
template <class T>
void softmax_cross_entropy_backward(int64_t rows, int64_t classes, const T* p, const int64_t* target,
                                    std::optional<int64_t> ignore, const T* dloss, T* dx);
}  // namespace plain

}  // namespace carousel::kernels
