#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_tasks.h>
#include <carousel/tensor/kernels/attention_tile.h>

#include <vector>

namespace carousel::kernels {
namespace {

// Of a task, where whole heads are too few.
constexpr int64_t queries_of_a_task = 256, keys_of_a_task = block_keys;

/// What one thread works in.
template <class T>
struct Workspace {
  Workspace(const AttentionShape& s, int64_t, Pieces& pieces)
      : few(s.queries <= few_queries),
        key_dots(pieces.take<T>(few ? 0 : PackedBlock<T>::memory_size(s.width, block_keys))),
        value_dots(pieces.take<T>(few ? 0 : PackedBlock<T>::memory_size(s.width, block_keys))),
        keys(pieces.take<T>(few ? 0 : PackedBlock<T>::memory_size(block_keys, s.width))),
        queries(pieces.take<T>(PackedBlock<T>::memory_size(std::min(s.queries, tile_queries), s.width))),
        slopes(pieces.take<T>(PackedBlock<T>::memory_size(std::min(s.queries, tile_queries), s.width))),
        dk(pieces.take<T>(block_keys * s.width)),
        dv(pieces.take<T>(block_keys * s.width)),
        scaled(pieces.take<T>(std::min(s.queries, tile_queries) * s.width)),
        p(pieces.take<T>(std::min(s.queries, tile_queries) * block_keys)),
        dp(pieces.take<T>(std::min(s.queries, tile_queries) * block_keys)) {}

  bool few;
  T *key_dots, *value_dots, *keys;  // of a block of keys, packed: k and v transposed, k as it is
  T *queries, *slopes;              // of a tile, packed: q, dy
  T *dk, *dv;                       // of the block, so far
  T* scaled;                        // scale q
  T *p, *dp;                        // of a tile: s, then p; dp, then ds
};

/// One head.
template <class T>
struct Head {
  HeadRows<const T> q, k, v, y, dy;
  HeadRows<T> dq, dk, dv;
  const T* lse;
  T* delta;  // dy . y
};

/// Which gradients a pass makes.
struct Wanted {
  bool queries, keys;
};

/// What the pairs of these queries and keys, at most a block of them, add to dq, and, in the workspace, to dk and dv.
template <class T>
void add_pairs(const AttentionShape& s, const Head<T>& h, const Sight& sight, Range queries, Range keys, Wanted wanted,
               Workspace<T>& w) {
  if (sight.of(queries, keys) == Seen::nothing) return;
  const HeadRows<const T> k = h.k.from(keys.begin), v = h.v.from(keys.begin);
  const PackedBlock<T> key_dots(s.width, keys.size(), w.key_dots), value_dots(s.width, keys.size(), w.value_dots);
  const PackedBlock<T> packed_keys(keys.size(), s.width, w.keys);
  if (!w.few) {
    key_dots.pack(k.data, 1, k.stride);
    value_dots.pack(v.data, 1, v.stride);
    if (wanted.queries) packed_keys.pack(k.data, k.stride, 1);
  }
  for_each_block(queries, tile_queries, [&](Range rows) {
    const Tile tile(sight, rows, keys);
    if (tile.empty()) return;
    const HeadRows<const T> q = h.q.from(rows.begin), dy = h.dy.from(rows.begin);
    scale_rows(rows.size(), s.width, static_cast<T>(s.scale), q.data, q.stride, w.scaled, s.width);
    tile.dots({w.scaled, s.width}, k, w.few ? nullptr : &key_dots, s.width, w.p);
    tile.dots(dy, v, w.few ? nullptr : &value_dots, s.width, w.dp);
    softmax_gradient(tile.scores(w.p), w.dp, static_cast<T>(s.scale), h.lse + rows.begin, h.delta + rows.begin);
    tile.hide(T{0}, w.p);
    tile.hide(T{0}, w.dp);
    if (wanted.queries) {
      tile.sum_over_keys(w.dp, k, w.few ? nullptr : &packed_keys, s.width, h.dq.from(rows.begin));
    }
    if (!wanted.keys) return;
    const PackedBlock<T> packed_queries(rows.size(), s.width, w.queries), slopes(rows.size(), s.width, w.slopes);
    packed_queries.pack(q.data, q.stride, 1);
    slopes.pack(dy.data, dy.stride, 1);
    tile.sum_over_queries(w.p, dy, slopes, s.width, {w.dv, s.width});
    tile.sum_over_queries(w.dp, q, packed_queries, s.width, {w.dk, s.width});
  });
}

/// Calls `body` for all keys, a block at a time.
template <class Body>
void for_each_block_of_keys(const AttentionShape& s, const Body& body) {
  for_each_block({0, s.keys}, block_keys, body);
}

template <class T>
void begin_queries(const AttentionShape& s, const Head<T>& h, Range queries) {
  const HeadRows<const T> y = h.y.from(queries.begin), dy = h.dy.from(queries.begin);
  fill_rows(queries, s.width, h.dq);
  dot_rows(queries.size(), s.width, dy.data, dy.stride, y.data, y.stride, h.delta + queries.begin);
}

template <class T>
void begin_keys(const AttentionShape& s, Range keys, Workspace<T>& w) {
  std::fill_n(w.dk, keys.size() * s.width, T{0});
  std::fill_n(w.dv, keys.size() * s.width, T{0});
}

template <class T>
void end_keys(const AttentionShape& s, const Head<T>& h, Range keys, const Workspace<T>& w) {
  for (int64_t j = 0; j < keys.size(); ++j) {
    std::copy_n(w.dk + j * s.width, s.width, h.dk.at(keys.begin + j));
    std::copy_n(w.dv + j * s.width, s.width, h.dv.at(keys.begin + j));
  }
}

}  // namespace

template <class T>
void attention_backward(const AttentionShape& s, const AttentionResult<T>& result, const Heads<const T>& dy,
                        const Heads<T>& dq, const Heads<T>& dk, const Heads<T>& dv) {
  std::vector<T> deltas(static_cast<size_t>(s.batch * s.heads * s.queries));
  const auto head = [&](int64_t b, int64_t a) {
    const int64_t at = (b * s.heads + a) * s.queries;
    return Head<T>{rows_of(result.q, b, a), rows_of(result.k, b, a), rows_of(result.v, b, a), rows_of(result.y, b, a),
                   rows_of(dy, b, a),       rows_of(dq, b, a),       rows_of(dk, b, a),       rows_of(dv, b, a),
                   result.lse + at,         deltas.data() + at};
  };
  const Range all_queries{0, s.queries};
  if (whole_heads(s, 2.0 / 9)) {  // the scores and dp are 2 of 9 products, where they are made twice
    for_each_task<Workspace<T>>(s, 1, 1, [&](int64_t b, int64_t a, Range, Workspace<T>& workspace) {
      const Head<T> h = head(b, a);
      const Sight sight(s, b);
      begin_queries(s, h, all_queries);
      for_each_block_of_keys(s, [&](Range keys) {
        begin_keys(s, keys, workspace);
        add_pairs(s, h, sight, all_queries, keys, {.queries = true, .keys = true}, workspace);
        end_keys(s, h, keys, workspace);
      });
    });
    return;
  }
  for_each_task<Workspace<T>>(
      s, s.queries, queries_of_a_task, [&](int64_t b, int64_t a, Range queries, Workspace<T>& workspace) {
        const Head<T> h = head(b, a);
        const Sight sight(s, b);
        begin_queries(s, h, queries);
        for_each_block_of_keys(
            s, [&](Range keys) { add_pairs(s, h, sight, queries, keys, {.queries = true, .keys = false}, workspace); });
      });
  for_each_task<Workspace<T>>(
      s, s.keys, keys_of_a_task, [&](int64_t b, int64_t a, Range keys, Workspace<T>& workspace) {
        const Head<T> h = head(b, a);
        begin_keys(s, keys, workspace);
        add_pairs(s, h, Sight(s, b), all_queries, keys, {.queries = false, .keys = true}, workspace);
        end_keys(s, h, keys, workspace);
      });
}

#define CAROUSEL_ATTENTION(T)                                                                               \
  template void attention_backward(const AttentionShape&, const AttentionResult<T>&, const Heads<const T>&, \
                                   const Heads<T>&, const Heads<T>&, const Heads<T>&);
CAROUSEL_ATTENTION(float)
CAROUSEL_ATTENTION(double)
#undef CAROUSEL_ATTENTION

}  // namespace carousel::kernels
