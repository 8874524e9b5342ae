#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_rows.h>
#include <carousel/tensor/kernels/attention_sight.h>
#include <carousel/tensor/kernels/packed_matrix.h>
#include <carousel/tensor/kernels/parallel.h>

#include <cmath>
#include <limits>
#include <vector>

namespace carousel::kernels {
namespace {

// A task takes a chunk of rows (queries, or keys for dk and dv) against blocks of the other side. A block is packed
// once for the whole chunk; the rows go by it in tiles, whose scores stay in the cache.
constexpr int64_t chunk_rows = 256, block_rows = 128, tile_rows = 64;

// So few rows do not repay packing.
constexpr int64_t few_rows = 4;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

/// Consecutive rows of one head.
template <class T>
struct Rows {
  T* data;
  int64_t stride;

  T* at(int64_t row) const { return data + row * stride; }
};

template <class T>
Rows<T> rows_of(const Heads<T>& heads, int64_t b, int64_t a, int64_t begin) {
  return {heads.at(b, a, begin), heads.step};
}

/// What one thread works in.
template <class T>
struct Workspace {
  /// For chunks of `chunk` rows. Little is taken where they are few, since generating asks for one row at a time.
  Workspace(int64_t chunk, const AttentionShape& s)
      : score(few_rows < chunk ? s.width : 0, block_rows),
        slope(few_rows < chunk ? s.width : 0, block_rows),
        sum(few_rows < chunk ? block_rows : 0, s.width),
        second_sum(few_rows < chunk ? block_rows : 0, s.width),
        scaled(std::max(chunk, std::min(block_rows, s.queries)) * s.width),
        scores(std::min(chunk, tile_rows) * block_rows),
        slopes(std::min(chunk, tile_rows) * block_rows),
        most(chunk),
        total(chunk) {}

  PackedMatrix<T> score, slope, sum, second_sum;  // the block as the right side of each product
  std::vector<T> scaled;                          // queries, times the scale
  std::vector<T> scores, slopes;                  // of a tile: s, then p; dp, then ds
  std::vector<T> most;                            // of each query: the running maximum
  std::vector<double> total;                      // and the running sum
};

/// Calls `body(b, a, range, workspace)` for every row, head and chunk of the `length` positions.
template <class T, class Body>
void for_each_chunk(const AttentionShape& s, int64_t length, const Body& body) {
  constexpr int64_t products_per_nanosecond = 16;
  const int64_t chunks = (length + chunk_rows - 1) / chunk_rows, tasks = s.batch * s.heads * chunks;
  if (tasks == 0) return;
  const int64_t work = 2 * s.batch * s.heads * s.queries * s.keys * s.width / products_per_nanosecond;
  const int64_t shares = std::min<int64_t>(tasks, threads_for(work));
  std::vector<Workspace<T>> workspaces;
  workspaces.reserve(static_cast<size_t>(shares));
  for (int64_t i = 0; i < shares; ++i) workspaces.emplace_back(std::min(length, chunk_rows), s);
  // Every thread takes each so-manieth chunk: under a causal mask later ones are more work.
  const auto run_share = [&](int64_t share) {
    for (int64_t task = share; task < tasks; task += shares) {
      const int64_t head = task / chunks, begin = task % chunks * chunk_rows;
      body(head / s.heads, head % s.heads, Range{begin, std::min(length, begin + chunk_rows)},
           workspaces[static_cast<size_t>(share)]);
    }
  };
  if (shares == 1) return run_share(0);
  parallel_tasks(shares, run_share);
}

template <class T>
void fill_rows(int64_t rows, int64_t width, const Rows<T>& to) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(to.at(r), width, T{0});
}

template <class T>
Rows<const T> scaled_copy(int64_t rows, int64_t width, const Rows<const T>& from, double scale, std::vector<T>& to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) to[r * width + i] = from.at(r)[i] * static_cast<T>(scale);
  }
  return {to.data(), width};
}

/// One side of a tile: rows, against a block of the other side. `few` rows take the block as it lies, others packed.
template <class T>
struct Block {
  Range range;
  int64_t width;
  bool few;

  /// Packs the block to be multiplied with, transposed or as it is.
  void pack_for_dots(const Rows<const T>& rows, PackedMatrix<T>& to) const {
    if (!few) to.pack(width, range.size(), rows.data, 1, rows.stride);
  }
  void pack_for_sums(const Rows<const T>& rows, PackedMatrix<T>& to) const {
    if (!few) to.pack(range.size(), width, rows.data, rows.stride, 1);
  }

  /// out[r][i] = row r . row i of the block.
  void dots(int64_t count, const Rows<const T>& rows, const Rows<const T>& block, const PackedMatrix<T>& packed,
            std::vector<T>& out) const {
    if (!few) return packed.multiply(count, rows.data, rows.stride, out.data(), block_rows, Into::overwrite);
    for (int64_t r = 0; r < count; ++r) {
      dot_rows(range.size(), width, rows.at(r), block.data, block.stride, out.data() + r * block_rows);
    }
  }

  /// to[r] += sum over i of weights[r][i] row i of the block: over all of them, the weights of what is not seen being
  /// zero, or where 0 times those would not be zero, over those for which `seen(r, i)`.
  template <class SeenAt>
  void sums(int64_t count, const std::vector<T>& weights, const Rows<const T>& block, const PackedMatrix<T>& packed,
            bool all, const SeenAt& seen, const Rows<T>& to) const {
    if (all && !few) return packed.multiply(count, weights.data(), block_rows, to.data, to.stride, Into::accumulate);
    for (int64_t r = 0; r < count; ++r) {
      const auto add = [&](Range run) {
        add_rows(run.size(), width, weights.data() + r * block_rows + run.begin - range.begin,
                 block.at(run.begin - range.begin), block.stride, to.at(r));
      };
      if (all) {
        add(range);
      } else {
        for_each_run(
            range, [&](int64_t i) { return seen(r, i); }, add);
      }
    }
  }

  /// Whether 0 times any number of the block is 0; of a block for few rows it is not worth asking.
  bool finite(const Rows<const T>& rows) const {
    return !few && rows_finite(range.size(), width, rows.data, rows.stride);
  }
};

/// Takes a row of scores into the running softmax: s becomes exp(s - maximum), and y and the sum what they would be had
/// they been summed with the new maximum.
template <class T>
void take_scores(int64_t count, T* s, T& most, double& total, int64_t width, T* y) {
  const T before = most;
  most = std::max(before, largest(count, s));
  const T shift = most == -infinity<T> ? 0 : most;
  if (most != before) {
    const T shrink = std::exp(before - shift);
    total *= shrink;
    for (int64_t i = 0; i < width; ++i) y[i] *= shrink;
  }
  total += exp_and_sum(count, shift, s);
}

template <class T>
void forward_chunk(const AttentionShape& s, const Rows<const T>& q, const Rows<const T>& k, const Rows<const T>& v,
                   const Rows<T>& y, T* lse, const Sight& sight, Range queries, Workspace<T>& w) {
  const Rows<const T> scaled = scaled_copy(queries.size(), s.width, q, s.scale, w.scaled);
  fill_rows(queries.size(), s.width, y);
  std::fill_n(w.most.begin(), queries.size(), -infinity<T>);
  std::fill_n(w.total.begin(), queries.size(), 0.0);
  for_each_block({0, s.keys}, block_rows, [&](Range keys) {
    if (sight.of(queries, keys) == Seen::nothing) return;
    const Rows<const T> k_block{k.at(keys.begin), k.stride}, v_block{v.at(keys.begin), v.stride};
    const Block<T> block{keys, s.width, queries.size() <= few_rows};
    block.pack_for_dots(k_block, w.score);
    block.pack_for_sums(v_block, w.sum);
    const bool finite = block.finite(v_block);
    for_each_block(queries, tile_rows, [&](Range tile) {
      const Seen seen = sight.of(tile, keys);
      if (seen == Seen::nothing) return;
      const int64_t first = tile.begin - queries.begin;
      block.dots(tile.size(), {scaled.at(first), scaled.stride}, k_block, w.score, w.scores);
      if (seen == Seen::part) sight.hide(tile, keys, -infinity<T>, w.scores.data(), block_rows, 1);
      for (int64_t r = 0; r < tile.size(); ++r) {
        take_scores(keys.size(), w.scores.data() + r * block_rows, w.most[first + r], w.total[first + r], s.width,
                    y.at(first + r));
      }
      block.sums(
          tile.size(), w.scores, v_block, w.sum, seen == Seen::everything || finite,
          [&](int64_t r, int64_t key) { return sight.sees(tile.begin + r, key); }, Rows<T>{y.at(first), y.stride});
    });
  });
  for (int64_t r = 0; r < queries.size(); ++r) {
    const double total = w.total[r];
    lse[r] = static_cast<T>(w.most[r] + std::log(total));
    if (total == 0) continue;  // y is zero, and lse -inf
    const T factor = static_cast<T>(1 / total);
    for (int64_t i = 0; i < s.width; ++i) y.at(r)[i] *= factor;
  }
}

/// What both passes of backward read, from the first position of the head.
template <class T>
struct HeadResult {
  Rows<const T> q, k, v, dy;
  const T *lse, *delta;  // delta = dy . y
};

template <class T>
void query_gradients(const AttentionShape& s, const HeadResult<T>& h, const Rows<T>& dq, const Sight& sight,
                     Range queries, Workspace<T>& w) {
  const Rows<const T> scaled =
      scaled_copy(queries.size(), s.width, {h.q.at(queries.begin), h.q.stride}, s.scale, w.scaled);
  fill_rows(queries.size(), s.width, dq);
  for_each_block({0, s.keys}, block_rows, [&](Range keys) {
    if (sight.of(queries, keys) == Seen::nothing) return;
    const Rows<const T> k_block{h.k.at(keys.begin), h.k.stride}, v_block{h.v.at(keys.begin), h.v.stride};
    const Block<T> block{keys, s.width, queries.size() <= few_rows};
    block.pack_for_dots(k_block, w.score);
    block.pack_for_dots(v_block, w.slope);
    block.pack_for_sums(k_block, w.sum);
    const bool finite = block.finite(k_block);
    for_each_block(queries, tile_rows, [&](Range tile) {
      const Seen seen = sight.of(tile, keys);
      if (seen == Seen::nothing) return;
      const int64_t first = tile.begin - queries.begin;
      block.dots(tile.size(), {scaled.at(first), scaled.stride}, k_block, w.score, w.scores);
      block.dots(tile.size(), {h.dy.at(tile.begin), h.dy.stride}, v_block, w.slope, w.slopes);
      for (int64_t r = 0; r < tile.size(); ++r) {
        softmax_gradient(keys.size(), h.lse + tile.begin + r, h.delta + tile.begin + r, 0,
                         w.scores.data() + r * block_rows, w.slopes.data() + r * block_rows);
      }
      if (seen == Seen::part) sight.hide(tile, keys, T{0}, w.slopes.data(), block_rows, 1);
      block.sums(
          tile.size(), w.slopes, k_block, w.sum, seen == Seen::everything || finite,
          [&](int64_t r, int64_t key) { return sight.sees(tile.begin + r, key); }, Rows<T>{dq.at(first), dq.stride});
    });
  });
  for (int64_t r = 0; r < queries.size(); ++r) {
    for (int64_t i = 0; i < s.width; ++i) dq.at(r)[i] *= static_cast<T>(s.scale);
  }
}

template <class T>
void key_gradients(const AttentionShape& s, const HeadResult<T>& h, const Rows<T>& dk, const Rows<T>& dv,
                   const Sight& sight, Range keys, Workspace<T>& w) {
  fill_rows(keys.size(), s.width, dk);
  fill_rows(keys.size(), s.width, dv);
  for_each_block({0, s.queries}, block_rows, [&](Range queries) {
    if (sight.of(queries, keys) == Seen::nothing) return;
    const Rows<const T> dy_block{h.dy.at(queries.begin), h.dy.stride};
    const Rows<const T> q_block =
        scaled_copy(queries.size(), s.width, {h.q.at(queries.begin), h.q.stride}, s.scale, w.scaled);
    const Block<T> block{queries, s.width, keys.size() <= few_rows};
    block.pack_for_dots(q_block, w.score);
    block.pack_for_dots(dy_block, w.slope);
    block.pack_for_sums(q_block, w.sum);
    block.pack_for_sums(dy_block, w.second_sum);
    const bool finite = block.finite(q_block) && block.finite(dy_block);
    for_each_block(keys, tile_rows, [&](Range tile) {
      const Seen seen = sight.of(queries, tile);
      if (seen == Seen::nothing) return;
      const int64_t first = tile.begin - keys.begin;
      block.dots(tile.size(), {h.k.at(tile.begin), h.k.stride}, q_block, w.score, w.scores);
      block.dots(tile.size(), {h.v.at(tile.begin), h.v.stride}, dy_block, w.slope, w.slopes);
      for (int64_t r = 0; r < tile.size(); ++r) {
        softmax_gradient(queries.size(), h.lse + queries.begin, h.delta + queries.begin, 1,
                         w.scores.data() + r * block_rows, w.slopes.data() + r * block_rows);
      }
      if (seen == Seen::part) {
        sight.hide(queries, tile, T{0}, w.scores.data(), 1, block_rows);
        sight.hide(queries, tile, T{0}, w.slopes.data(), 1, block_rows);
      }
      const auto sees = [&](int64_t r, int64_t query) { return sight.sees(query, tile.begin + r); };
      const bool all = seen == Seen::everything || finite;
      block.sums(tile.size(), w.scores, dy_block, w.second_sum, all, sees, Rows<T>{dv.at(first), dv.stride});
      block.sums(tile.size(), w.slopes, q_block, w.sum, all, sees, Rows<T>{dk.at(first), dk.stride});
    });
  });
}

}  // namespace

template <class T>
void attention_forward(const AttentionShape& s, const Heads<const T>& q, const Heads<const T>& k,
                       const Heads<const T>& v, const Heads<T>& y, T* lse) {
  for_each_chunk<T>(s, s.queries, [&](int64_t b, int64_t a, Range queries, Workspace<T>& workspace) {
    forward_chunk(s, rows_of(q, b, a, queries.begin), rows_of(k, b, a, 0), rows_of(v, b, a, 0),
                  rows_of(y, b, a, queries.begin), lse + (b * s.heads + a) * s.queries + queries.begin, Sight(s, b),
                  queries, workspace);
  });
}

template <class T>
void attention_backward(const AttentionShape& s, const AttentionResult<T>& result, const Heads<const T>& dy,
                        const Heads<T>& dq, const Heads<T>& dk, const Heads<T>& dv) {
  std::vector<T> deltas(static_cast<size_t>(s.batch * s.heads * s.queries));
  const auto head = [&](int64_t b, int64_t a) {
    const int64_t at = (b * s.heads + a) * s.queries;
    return HeadResult<T>{rows_of(result.q, b, a, 0),
                         rows_of(result.k, b, a, 0),
                         rows_of(result.v, b, a, 0),
                         rows_of(dy, b, a, 0),
                         result.lse + at,
                         deltas.data() + at};
  };
  for_each_chunk<T>(s, s.queries, [&](int64_t b, int64_t a, Range queries, Workspace<T>& workspace) {
    T* const delta = deltas.data() + (b * s.heads + a) * s.queries;
    for (int64_t i = queries.begin; i < queries.end; ++i) {
      dot_rows(1, s.width, dy.at(b, a, i), result.y.at(b, a, i), 0, delta + i);
    }
    query_gradients(s, head(b, a), rows_of(dq, b, a, queries.begin), Sight(s, b), queries, workspace);
  });
  for_each_chunk<T>(s, s.keys, [&](int64_t b, int64_t a, Range keys, Workspace<T>& workspace) {
    key_gradients(s, head(b, a), rows_of(dk, b, a, keys.begin), rows_of(dv, b, a, keys.begin), Sight(s, b), keys,
                  workspace);
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

}  // namespace carousel::kernels
