#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_sight.h>

#include <cmath>
#include <limits>
#include <vector>

namespace carousel::kernels::plain {
namespace {

template <class T>
T dot(int64_t n, const T* x, const T* y) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T>
void add(int64_t n, T factor, const T* x, T* sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += factor * x[i];
}

template <class Body>
void for_each_head(const AttentionShape& s, const Body& body) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t a = 0; a < s.heads; ++a) body(b, a);
  }
}

/// Calls `body(query, key)` for every pair of a row that see each other.
template <class Body>
void for_each_pair(const AttentionShape& s, int64_t b, const Body& body) {
  const Sight sight(s, b);
  for (int64_t i = 0; i < s.queries; ++i) {
    for (int64_t j = 0; j < s.keys; ++j) {
      if (sight.sees(i, j)) body(i, j);
    }
  }
}

}  // namespace

template <class T>
void attention_forward(const AttentionShape& s, const Heads<const T>& q, const Heads<const T>& k,
                       const Heads<const T>& v, const Heads<T>& y, T* lse) {
  for_each_head(s, [&](int64_t b, int64_t a) {
    const auto score = [&](int64_t i, int64_t j) {
      return static_cast<T>(s.scale) * dot(s.width, q.at(b, a, i), k.at(b, a, j));
    };
    T* const own = lse + (b * s.heads + a) * s.queries;
    std::vector<T> most(s.queries, -std::numeric_limits<T>::infinity()), total(s.queries, T{0});
    for_each_pair(s, b, [&](int64_t i, int64_t j) { most[i] = std::max(most[i], score(i, j)); });
    for (T& shift : most) shift = shift == -std::numeric_limits<T>::infinity() ? 0 : shift;
    for_each_pair(s, b, [&](int64_t i, int64_t j) { total[i] += std::exp(score(i, j) - most[i]); });
    for (int64_t i = 0; i < s.queries; ++i) {
      own[i] = most[i] + std::log(total[i]);
      std::fill_n(y.at(b, a, i), s.width, T{0});
    }
    for_each_pair(s, b, [&](int64_t i, int64_t j) {
      if (total[i] == 0) return;
      add(s.width, std::exp(score(i, j) - most[i]) / total[i], v.at(b, a, j), y.at(b, a, i));
    });
  });
}

template <class T>
void attention_backward(const AttentionShape& s, const AttentionResult<T>& r, const Heads<const T>& dy,
                        const Heads<T>& dq, const Heads<T>& dk, const Heads<T>& dv) {
  const T scale = static_cast<T>(s.scale);
  for_each_head(s, [&](int64_t b, int64_t a) {
    for (int64_t i = 0; i < s.queries; ++i) std::fill_n(dq.at(b, a, i), s.width, T{0});
    for (int64_t j = 0; j < s.keys; ++j) {
      std::fill_n(dk.at(b, a, j), s.width, T{0});
      std::fill_n(dv.at(b, a, j), s.width, T{0});
    }
    for_each_pair(s, b, [&](int64_t i, int64_t j) {
      const T lse = r.lse[(b * s.heads + a) * s.queries + i];
      if (lse == -std::numeric_limits<T>::infinity()) return;
      const T p = std::exp(scale * dot(s.width, r.q.at(b, a, i), r.k.at(b, a, j)) - lse);
      const T slope = dot(s.width, dy.at(b, a, i), r.v.at(b, a, j)) - dot(s.width, dy.at(b, a, i), r.y.at(b, a, i));
      add(s.width, p, dy.at(b, a, i), dv.at(b, a, j));
      add(s.width, scale * p * slope, r.k.at(b, a, j), dq.at(b, a, i));
      add(s.width, scale * p * slope, r.q.at(b, a, i), dk.at(b, a, j));
    });
  });
}

#define CAROUSEL_ATTENTION(T)                                                                               \
  template void attention_forward(const AttentionShape&, const Heads<const T>&, const Heads<const T>&,      \
                                  const Heads<const T>&, const Heads<T>&, T*);                              \
  template void attention_backward(const AttentionShape&, const AttentionResult<T>&, const Heads<const T>&, \
                                   const Heads<T>&, const Heads<T>&, const Heads<T>&);
CAROUSEL_ATTENTION(float)
CAROUSEL_ATTENTION(double)
#undef CAROUSEL_ATTENTION

}  // namespace carousel::kernels::plain
