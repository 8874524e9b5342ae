#pragma once

#include <algorithm>
#include <cstdint>

/// Inside the attention kernel: SIMD over tiles of scores, or one vector against many. Everything runs on the calling
/// thread. Sums run in T, lane by lane. The plain attention of attention.h is the twin of all of them.
namespace carousel::kernels {

/// A number for every pair of consecutive queries and keys, a query a row. The rows lie `stride` apart, a multiple of
/// 64 bytes: whole vectors are read and written, up to `stride` numbers of a row. Row r counts up to end(r), which is
/// the mask of a causal tile; what lies behind is neither used nor kept.
template <class T>
struct ScoreTile {
  int64_t rows, columns, stride;
  T* data;
  int64_t first_end, end_step;  // keys that row 0 sees, and how many more each row further down; may be out of range

  T* row(int64_t r) const { return data + r * stride; }
  int64_t end(int64_t r) const { return std::clamp<int64_t>(first_end + r * end_step, 0, columns); }
};

/// What the running softmax knows of queries: for each the largest score so far, the sum of exp(score - largest), and
/// the sum of values [width] in the same measure.
template <class T>
struct RunningSoftmax {
  T* most;
  double* total;
  T* values;
  int64_t width;

  RunningSoftmax from(int64_t query) const { return {most + query, total + query, values + query * width, width}; }
};

/// Takes the scores of more keys in: s <- exp(s - largest), 0 behind the row's end; total and values are brought to the
/// new largest, the sum added to total. exp is 0 where it would be below about 2^-126.5. NaN stays NaN.
void take_scores(const ScoreTile<float>& scores, const RunningSoftmax<float>& so_far);
void take_scores(const ScoreTile<double>& scores, const RunningSoftmax<double>& so_far);

/// Of `count` queries that have seen all: y = sum of values / total, `stride` apart, and lse = largest + log total; 0
/// and -inf where nothing was seen.
void end_softmax(int64_t count, const RunningSoftmax<float>& so_far, float* y, int64_t stride, float* lse);
void end_softmax(int64_t count, const RunningSoftmax<double>& so_far, double* y, int64_t stride, double* lse);

/// s <- p = exp(s - lse), dp <- scale p (dp - delta): from a score and the gradient of its probability to the
/// probability and the gradient of the product q . k, 0 behind the row's end. dp has the rows and the stride of s; row
/// r has lse[r] and delta[r], and lse = -inf gives p = 0. exp as above; beyond 2^127, where only rounding can bring a
/// score, it is that.
void softmax_gradient(const ScoreTile<float>& s, float* dp, float scale, const float* lse, const float* delta);
void softmax_gradient(const ScoreTile<double>& s, double* dp, double scale, const double* lse, const double* delta);

/// out[i] = x . row i, for rows of `width` numbers, `stride` apart, x being `x_stride` further for each of them.
void dot_rows(int64_t rows, int64_t width, const float* x, int64_t x_stride, const float* row, int64_t stride,
              float* out);
void dot_rows(int64_t rows, int64_t width, const double* x, int64_t x_stride, const double* row, int64_t stride,
              double* out);

/// sum += weights[i] row i, over the rows.
void add_rows(int64_t rows, int64_t width, const float* weights, const float* row, int64_t stride, float* sum);
void add_rows(int64_t rows, int64_t width, const double* weights, const double* row, int64_t stride, double* sum);

/// to[r] = factor from[r], in rows of `width` numbers; `to` and `from` may be the same.
void scale_rows(int64_t rows, int64_t width, float factor, const float* from, int64_t stride, float* to,
                int64_t to_stride);
void scale_rows(int64_t rows, int64_t width, double factor, const double* from, int64_t stride, double* to,
                int64_t to_stride);

/// Whether 0 times any of the numbers is 0.
bool rows_finite(int64_t rows, int64_t width, const float* row, int64_t stride);
bool rows_finite(int64_t rows, int64_t width, const double* row, int64_t stride);

}  // namespace carousel::kernels
