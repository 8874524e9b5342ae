#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/reduce.h>
#include <carousel/tensor/kernels/softmax.h>
#include <carousel/tensor/kernels/vector_math.h>

#include <cmath>
#include <limits>
#include <vector>

namespace carousel::kernels {
namespace {

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

template <class T>
double sum_of_row(int64_t n, const T* x) {
  double lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t j = 0; j < 4; ++j) lanes[j] += static_cast<double>(x[i + j]);
  }
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/// log sum exp(x - shift); 0 for the shifts that no sum can change.
template <class T>
double log_sum_of_row(int64_t n, const T* x, T shift) {
  constexpr int64_t piece = 1024;
  if (!std::isfinite(shift)) return 0;
  double total = 0;
  T exponentials[piece];
  for (int64_t first = 0; first < n; first += piece) {
    const int64_t count = std::min(piece, n - first);
    for (int64_t i = 0; i < count; ++i) exponentials[i] = x[first + i] - shift;
    exp(count, exponentials, exponentials);
    total += sum_of_row(count, exponentials);
  }
  return std::log(total);
}

template <class T>
void softmax_of_row(int64_t n, const T* x, T shift, T* y) {
  if (shift == minus_infinity<T>) {
    std::fill_n(y, n, T(0));
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
  exp(n, y, y);
  if (!std::isfinite(shift)) return;  // NaN where +inf stood, 0 elsewhere
  const T factor = static_cast<T>(1 / sum_of_row(n, y));
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

template <class T>
void log_softmax_of_row(int64_t n, const T* x, T shift, T* y) {
  if (shift == minus_infinity<T>) {
    std::fill_n(y, n, shift);
    return;
  }
  const T log_sum = static_cast<T>(log_sum_of_row(n, x, shift));
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) - log_sum;  // shift + log_sum would round log_sum away
}

template <class Body>
void for_each_row(int64_t rows, int64_t n, const Body& body) {
  const int64_t rows_to_a_range = 1 + elementwise_grain / 4 / (1 + n);  // an exponential is worth a few operations
  parallel_ranges(rows, rows_to_a_range, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

template <class T>
void logsumexp(int64_t rows, int64_t n, const T* x, T* out) {
  max({.outer = rows, .n = n, .outer_stride = n}, x, out);
  for_each_row(rows, n,
               [&](int64_t row) { out[row] = static_cast<T>(out[row] + log_sum_of_row(n, x + row * n, out[row])); });
}

template <class T>
void softmax(int64_t rows, int64_t n, const T* x, T* y) {
  std::vector<T> maxima(static_cast<size_t>(rows));
  max({.outer = rows, .n = n, .outer_stride = n}, x, maxima.data());
  for_each_row(rows, n, [&](int64_t row) { softmax_of_row(n, x + row * n, maxima[row], y + row * n); });
}

template <class T>
void log_softmax(int64_t rows, int64_t n, const T* x, T* y) {
  std::vector<T> maxima(static_cast<size_t>(rows));
  max({.outer = rows, .n = n, .outer_stride = n}, x, maxima.data());
  for_each_row(rows, n, [&](int64_t row) { log_softmax_of_row(n, x + row * n, maxima[row], y + row * n); });
}

#define CAROUSEL_SOFTMAX(T)                                \
  template void logsumexp(int64_t, int64_t, const T*, T*); \
  template void softmax(int64_t, int64_t, const T*, T*);   \
  template void log_softmax(int64_t, int64_t, const T*, T*);
CAROUSEL_SOFTMAX(float)
CAROUSEL_SOFTMAX(double)
#undef CAROUSEL_SOFTMAX

}  // namespace carousel::kernels
