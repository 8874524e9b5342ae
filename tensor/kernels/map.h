#pragma once

#include <carousel/tensor/kernels/strided.h>

#include <algorithm>

/// Inner loops: out = f(a), f(a, b), f(a, b, c) over one run, for a stateless function object F. Dense runs and
/// constant operands (step 0) get loops of their own, which the compiler vectorises. `out` may be an operand's very
/// memory, but no shifted part of it.
namespace carousel::kernels {

template <class T>
constexpr bool is_dense(int64_t step) {
  return step == static_cast<int64_t>(sizeof(T));
}

template <class Out, class F, class A>
void map1(const Run<2>& run) {
  const auto [out, a] = run.at;
  const auto [out_step, a_step] = run.step;
  auto* dense_out = reinterpret_cast<Out*>(out);
  const auto* dense_a = reinterpret_cast<const A*>(a);
  const int64_t n = run.count;
  if (is_dense<Out>(out_step) && is_dense<A>(a_step)) {
    for (int64_t i = 0; i < n; ++i) dense_out[i] = F{}(dense_a[i]);
  } else if (is_dense<Out>(out_step) && a_step == 0) {
    const Out value = F{}(*dense_a);
    for (int64_t i = 0; i < n; ++i) dense_out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<Out*>(out + i * out_step) = F{}(*reinterpret_cast<const A*>(a + i * a_step));
    }
  }
}

template <class Out, class F, class A, class B>
void map2(const Run<3>& run) {
  const auto [out, a, b] = run.at;
  const auto [out_step, a_step, b_step] = run.step;
  auto* dense_out = reinterpret_cast<Out*>(out);
  const auto* dense_a = reinterpret_cast<const A*>(a);
  const auto* dense_b = reinterpret_cast<const B*>(b);
  const int64_t n = run.count;
  if (is_dense<Out>(out_step) && is_dense<A>(a_step) && is_dense<B>(b_step)) {
    for (int64_t i = 0; i < n; ++i) dense_out[i] = F{}(dense_a[i], dense_b[i]);
  } else if (is_dense<Out>(out_step) && is_dense<A>(a_step) && b_step == 0) {
    const B value = *dense_b;
    for (int64_t i = 0; i < n; ++i) dense_out[i] = F{}(dense_a[i], value);
  } else if (is_dense<Out>(out_step) && a_step == 0 && is_dense<B>(b_step)) {
    const A value = *dense_a;
    for (int64_t i = 0; i < n; ++i) dense_out[i] = F{}(value, dense_b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<Out*>(out + i * out_step) =
          F{}(*reinterpret_cast<const A*>(a + i * a_step), *reinterpret_cast<const B*>(b + i * b_step));
    }
  }
}

template <class Out, class F, class A, class B, class C>
void map3(const Run<4>& run) {
  const auto [out, a, b, c] = run.at;
  const auto [out_step, a_step, b_step, c_step] = run.step;
  for (int64_t i = 0; i < run.count; ++i) {
    *reinterpret_cast<Out*>(out + i * out_step) =
        F{}(*reinterpret_cast<const A*>(a + i * a_step), *reinterpret_cast<const B*>(b + i * b_step),
            *reinterpret_cast<const C*>(c + i * c_step));
  }
}

/// For an F that takes whole arrays, `F{}(n, at)`: the first `Results` of the pointers `at` are written, the others
/// read, and none is another's. Other runs than dense ones are brought into arrays first, so that every number is
/// rounded the same way.
template <class T, size_t Results, class F, size_t N>
void map_arrays(const Run<N>& run) {
  std::array<T*, N> at;
  bool dense = true;
  for (size_t k = 0; k < N; ++k) {
    at[k] = reinterpret_cast<T*>(run.at[k]);
    dense = dense && is_dense<T>(run.step[k]);
  }
  if (dense) return F{}(run.count, at);
  constexpr int64_t piece = 256;
  T buffers[N][piece];
  for (size_t k = 0; k < N; ++k) at[k] = buffers[k];
  const auto element = [&run](size_t k, int64_t i) { return reinterpret_cast<T*>(run.at[k] + i * run.step[k]); };
  for (int64_t first = 0; first < run.count; first += piece) {
    const int64_t n = std::min(piece, run.count - first);
    for (size_t k = Results; k < N; ++k) {
      for (int64_t i = 0; i < n; ++i) buffers[k][i] = *element(k, first + i);
    }
    F{}(n, at);
    for (size_t k = 0; k < Results; ++k) {
      for (int64_t i = 0; i < n; ++i) *element(k, first + i) = buffers[k][i];
    }
  }
}

/// Whether the predicate F holds somewhere in the run.
template <class F, class A>
bool any1(const Run<1>& run) {
  const int64_t step = run.step[0];
  const auto* dense = reinterpret_cast<const A*>(run.at[0]);
  int found = 0;  // no early exit, so that the loop vectorises
  if (is_dense<A>(step)) {
    for (int64_t i = 0; i < run.count; ++i) found |= F{}(dense[i]);
  } else {
    for (int64_t i = 0; i < run.count; ++i) found |= F{}(*reinterpret_cast<const A*>(run.at[0] + i * step));
  }
  return found != 0;
}

}  // namespace carousel::kernels
