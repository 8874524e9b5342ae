#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/reduce.h>

#include <limits>
#include <type_traits>
#include <vector>

namespace carousel::kernels {
namespace {

constexpr int64_t row_block = 8192;     // elements of one contiguous reduction that are folded in one go
constexpr int64_t column_block = 128;   // columns that are folded side by side, and
constexpr int64_t column_height = 256;  // the rows of such a block

// A rule says how elements are lifted into partial results, joined, and finished; `start` is the neutral element.

template <class T>
struct Sum {
  using Partial = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  static Partial start() { return 0; }
  static Partial lift(T x) { return static_cast<Partial>(x); }
  static Partial join(Partial a, Partial b) { return a + b; }
  static T finish(Partial a, int64_t) { return static_cast<T>(a); }
};

template <class T>
struct Mean : Sum<T> {
  static T finish(double a, int64_t n) { return static_cast<T>(a / static_cast<double>(n)); }
};

template <class T>
constexpr T least() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T largest() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

template <class T>
struct Max {
  using Partial = T;
  static T start() { return least<T>(); }
  static T lift(T x) { return x; }
  static T join(T a, T b) {
    const T larger = b > a ? b : a;  // an a of NaN stays; compiles to one instruction, without a branch
    return b == b ? larger : b;
  }
  static T finish(T a, int64_t) { return a; }
};

template <class T>
struct Min : Max<T> {
  static T start() { return largest<T>(); }
  static T join(T a, T b) {
    const T smaller = b < a ? b : a;
    return b == b ? smaller : b;
  }
};

/// Joins p[0], p[stride], ... pairwise.
template <class Rule>
typename Rule::Partial join_pairwise(const typename Rule::Partial* p, int64_t count, int64_t stride) {
  if (count == 1) return *p;
  const int64_t half = count / 2;
  return Rule::join(join_pairwise<Rule>(p, half, stride), join_pairwise<Rule>(p + half * stride, count - half, stride));
}

/// Folds n elements in eight lanes, which the compiler keeps in vector registers.
template <class Rule, class T>
typename Rule::Partial fold_row(const T* x, int64_t n, int64_t stride) {
  typename Rule::Partial lanes[8];
  for (auto& lane : lanes) lane = Rule::start();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t j = 0; j < 8; ++j) lanes[j] = Rule::join(lanes[j], Rule::lift(x[(i + j) * stride]));
  }
  for (int64_t j = 0; i < n; ++i, ++j) lanes[j] = Rule::join(lanes[j], Rule::lift(x[i * stride]));
  return join_pairwise<Rule>(lanes, 8, 1);
}

/// Folds `rows` rows of `columns` <= column_block contiguous elements into one partial result a column.
template <class Rule, class T>
void fold_columns(const T* x, int64_t rows, int64_t stride, int64_t columns, typename Rule::Partial* out) {
  typename Rule::Partial total[column_block];
  std::fill_n(total, columns, Rule::start());
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T *x0 = x + i * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    for (int64_t j = 0; j < columns; ++j) {
      const auto low = Rule::join(Rule::lift(x0[j]), Rule::lift(x1[j]));
      const auto high = Rule::join(Rule::lift(x2[j]), Rule::lift(x3[j]));
      total[j] = Rule::join(total[j], Rule::join(low, high));
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) total[j] = Rule::join(total[j], Rule::lift(x[i * stride + j]));
  }
  std::copy_n(total, columns, out);
}

int64_t blocks_of(int64_t count, int64_t block) { return (count + block - 1) / block; }

/// Tasks of `elements` each that make one range of a parallel loop.
int64_t grain_for(int64_t elements) { return 1 + elementwise_grain / (1 + elements); }

/// Partial results [outer, inner, blocks] of blocks of every reduction.
template <class Rule, class T>
void fold_rows(const ReduceLayout& l, int64_t blocks, const T* x, typename Rule::Partial* partials) {
  parallel_ranges(l.outer * l.inner * blocks, grain_for(std::min(l.n, row_block)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * row_block, result = task / blocks;
      const T* row = x + result / l.inner * l.outer_stride + result % l.inner * l.inner_stride + first * l.stride;
      const int64_t count = std::min(row_block, l.n - first);
      partials[task] = l.stride == 1 ? fold_row<Rule>(row, count, 1) : fold_row<Rule>(row, count, l.stride);
    }
  });
}

/// Partial results [outer, blocks, inner], where `inner` is contiguous in x.
template <class Rule, class T>
void fold_column_blocks(const ReduceLayout& l, int64_t blocks, const T* x, typename Rule::Partial* partials) {
  const int64_t bands = blocks_of(l.inner, column_block);
  const int64_t elements = std::min(l.n, column_height) * std::min(l.inner, column_block);
  parallel_ranges(l.outer * blocks * bands, grain_for(elements), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % bands * column_block, row_of_partials = task / bands;
      const int64_t first = row_of_partials % blocks * column_height;
      fold_columns<Rule>(x + row_of_partials / blocks * l.outer_stride + first * l.stride + column,
                         std::min(column_height, l.n - first), l.stride, std::min(column_block, l.inner - column),
                         partials + row_of_partials * l.inner + column);
    }
  });
}

template <class Rule, class T>
void reduce(const ReduceLayout& l, const T* x, T* out) {
  const int64_t results = l.outer * l.inner;
  if (results == 0) return;
  const bool by_columns = l.inner > 1 && l.inner_stride == 1 && l.stride != 1;
  const int64_t blocks = std::max<int64_t>(1, blocks_of(l.n, by_columns ? column_height : row_block));
  std::vector<typename Rule::Partial> partials(static_cast<size_t>(results * blocks));
  by_columns ? fold_column_blocks<Rule>(l, blocks, x, partials.data()) : fold_rows<Rule>(l, blocks, x, partials.data());
  for (int64_t i = 0; i < l.outer; ++i) {
    for (int64_t j = 0; j < l.inner; ++j, ++out) {
      const auto* first = partials.data() + i * blocks * l.inner + (by_columns ? j : j * blocks);
      *out = Rule::finish(join_pairwise<Rule>(first, blocks, by_columns ? l.inner : 1), l.n);
    }
  }
}

}  // namespace

template <class T>
void sum(const ReduceLayout& layout, const T* x, T* out) {
  reduce<Sum<T>>(layout, x, out);
}

template <class T>
void mean(const ReduceLayout& layout, const T* x, T* out) {
  reduce<Mean<T>>(layout, x, out);
}

template <class T>
void max(const ReduceLayout& layout, const T* x, T* out) {
  reduce<Max<T>>(layout, x, out);
}

template <class T>
void min(const ReduceLayout& layout, const T* x, T* out) {
  reduce<Min<T>>(layout, x, out);
}

template <class T>
void find_first(const ReduceLayout& l, const T* x, const T* value, int64_t* out) {
  parallel_ranges(l.outer * l.inner, grain_for(l.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x + i / l.inner * l.outer_stride + i % l.inner * l.inner_stride;
      const auto matches = [&](T y) { return y == value[i] || (y != y && value[i] != value[i]); };
      int64_t at = 0;
      while (!matches(row[at * l.stride])) ++at;
      out[i] = at;
    }
  });
}

#define CAROUSEL_REDUCE(T)                              \
  template void sum(const ReduceLayout&, const T*, T*); \
  template void max(const ReduceLayout&, const T*, T*); \
  template void min(const ReduceLayout&, const T*, T*); \
  template void find_first(const ReduceLayout&, const T*, const T*, int64_t*);
CAROUSEL_REDUCE(float)
CAROUSEL_REDUCE(double)
CAROUSEL_REDUCE(int64_t)
#undef CAROUSEL_REDUCE
template void mean(const ReduceLayout&, const float*, float*);
template void mean(const ReduceLayout&, const double*, double*);

}  // namespace carousel::kernels
