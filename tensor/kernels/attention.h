#pragma once

#include <cstdint>

/// Attention, softmax(scale Q K^T) V over the keys that a query sees, forward and backward, in blocks: with the running
/// maximum and sum of Milakov and Gimelshein (2018), so that no T x S matrix is ever there (Dao and others 2022).
///
///   forward   s_ij = scale q_i . k_j,  lse_i = log sum_j exp(s_ij),  p_ij = exp(s_ij - lse_i),  y_i = sum_j p_ij v_j
///   backward  ds_ij = p_ij (dy_i . v_j - dy_i . y_i),
///             dq_i = scale sum_j ds_ij k_j,  dk_j = scale sum_i ds_ij q_i,  dv_j = sum_i p_ij dy_i
///
/// All sums run over the pairs in which query i sees key j: first[i] <= j, j <= S - T + i when causal, and visible. A
/// query that sees nothing gives y = 0, lse = -inf and no gradient; one whose scores are all -inf gives y = 0 too. What
/// is not seen may be NaN or infinite: it is left out, not multiplied by zero.
///
/// Parallel over rows and heads, and where those are too few for the threads, also over chunks of 256 queries (for dk
/// and dv of 128 keys), without locks. Backward makes the scores once where a head is one task, else twice, once for dq
/// and once for dk and dv. Neither changes results, and so the thread count does not: queries go by in tiles of 64,
/// keys in blocks of 128, whose sums are added up in order. Nothing above the diagonal of a causal mask is made but up
/// to 16 keys beyond it. Scratch is a few blocks of 128 x 128 and 1024 x hd numbers a thread, which the calling thread
/// keeps, and [B, A, T] numbers in backward. Error: a score has that of a product over hd numbers; the sums over keys
/// or queries add (S / 128 + 136) eps relative to the sum of magnitudes, and a probability below about 2^-126.5 is 0.
namespace carousel::kernels {

struct AttentionShape {
  int64_t batch, heads, queries, keys, width;  // B, A, T, S, hd
  double scale;
  bool causal;
  const int64_t* first = nullptr;  // [B, T]; null: 0 everywhere
  const bool* visible = nullptr;   // [B, T, S] with the two strides below and no gaps between keys; null: true
  int64_t visible_row = 0, visible_query = 0;
};

/// Numbers [B, A, steps, hd], the last axis without gaps, at these distances along the others.
template <class T>
struct Heads {
  T* data;
  int64_t row, head, step;

  T* at(int64_t b, int64_t a, int64_t t) const { return data + b * row + a * head + t * step; }
};

/// q, y [B, A, T, hd], k, v [B, A, S, hd], lse [B, A, T] without gaps. y and lse are written.
template <class T>
void attention_forward(const AttentionShape& shape, const Heads<const T>& q, const Heads<const T>& k,
                       const Heads<const T>& v, const Heads<T>& y, T* lse);

/// What backward needs of forward.
template <class T>
struct AttentionResult {
  Heads<const T> q, k, v, y;
  const T* lse;
};

/// dq, dk and dv are overwritten.
template <class T>
void attention_backward(const AttentionShape& shape, const AttentionResult<T>& result, const Heads<const T>& dy,
                        const Heads<T>& dq, const Heads<T>& dk, const Heads<T>& dv);

namespace plain {
template <class T>
void attention_forward(const AttentionShape& shape, const Heads<const T>& q, const Heads<const T>& k,
                       const Heads<const T>& v, const Heads<T>& y, T* lse);
template <class T>
void attention_backward(const AttentionShape& shape, const AttentionResult<T>& result, const Heads<const T>& dy,
                        const Heads<T>& dq, const Heads<T>& dk, const Heads<T>& dv);
}  // namespace plain

}  // namespace carousel::kernels
