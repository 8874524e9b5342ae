#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_tasks.h>
#include <carousel/tensor/kernels/attention_tile.h>

#include <limits>

namespace carousel::kernels {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

// Queries that go by the keys together, and those of a task where whole heads are too few tasks.
constexpr int64_t most_queries = 1024, queries_of_a_task = 256;

/// What one thread works in, for `chunk` queries.
template <class T>
struct Workspace {
  Workspace(const AttentionShape& s, int64_t chunk, Pieces& pieces)
      : few(s.queries <= few_queries),
        keys(pieces.take<T>(few ? 0 : PackedBlock<T>::memory_size(s.width, block_keys))),
        values(pieces.take<T>(few ? 0 : PackedBlock<T>::memory_size(block_keys, s.width))),
        scaled(pieces.take<T>(std::min(chunk, most_queries) * s.width)),
        scores(pieces.take<T>(std::min(chunk, tile_queries) * block_keys)),
        running{.most = pieces.take<T>(std::min(chunk, most_queries)),
                .total = pieces.take<double>(std::min(chunk, most_queries)),
                .values = pieces.take<T>(std::min(chunk, most_queries) * s.width),
                .width = s.width} {}

  bool few;
  T *keys, *values;           // of a block, packed
  T* scaled;                  // queries, times the scale
  T* scores;                  // of a tile, then the probabilities
  RunningSoftmax<T> running;  // of the queries
};

/// One head.
template <class T>
struct Head {
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  T* lse;
};

template <class T>
void forward_chunk(const AttentionShape& s, const Head<T>& h, const Sight& sight, Range queries, Workspace<T>& w) {
  const HeadRows<const T> scaled{w.scaled, s.width};
  scale_rows(queries.size(), s.width, static_cast<T>(s.scale), h.q.at(queries.begin), h.q.stride, w.scaled, s.width);
  std::fill_n(w.running.most, queries.size(), -infinity<T>);
  std::fill_n(w.running.total, queries.size(), 0.0);
  std::fill_n(w.running.values, queries.size() * s.width, T{0});
  for_each_block({0, s.keys}, block_keys, [&](Range keys) {
    if (sight.of(queries, keys) == Seen::nothing) return;
    const HeadRows<const T> k = h.k.from(keys.begin), v = h.v.from(keys.begin);
    const PackedBlock<T> packed_keys(s.width, keys.size(), w.keys), packed_values(keys.size(), s.width, w.values);
    if (!w.few) {
      packed_keys.pack(k.data, 1, k.stride);
      packed_values.pack(v.data, v.stride, 1);
    }
    for_each_block(queries, tile_queries, [&](Range rows) {
      const Tile tile(sight, rows, keys);
      if (tile.empty()) return;
      const int64_t first = rows.begin - queries.begin;
      const RunningSoftmax<T> running = w.running.from(first);
      tile.dots(scaled.from(first), k, w.few ? nullptr : &packed_keys, s.width, w.scores);
      tile.hide(-infinity<T>, w.scores);
      take_scores(tile.scores(w.scores), running);
      tile.sum_over_keys(w.scores, v, w.few ? nullptr : &packed_values, s.width, {running.values, s.width});
    });
  });
  end_softmax(queries.size(), w.running, h.y.at(queries.begin), h.y.stride, h.lse + queries.begin);
}

}  // namespace

template <class T>
void attention_forward(const AttentionShape& s, const Heads<const T>& q, const Heads<const T>& k,
                       const Heads<const T>& v, const Heads<T>& y, T* lse) {
  const int64_t chunk = whole_heads(s, 0.05) ? s.queries : queries_of_a_task;
  for_each_task<Workspace<T>>(s, s.queries, chunk, [&](int64_t b, int64_t a, Range task, Workspace<T>& workspace) {
    const Head<T> head{rows_of(q, b, a), rows_of(k, b, a), rows_of(v, b, a), rows_of(y, b, a),
                       lse + (b * s.heads + a) * s.queries};
    const Sight sight(s, b);
    for_each_block(task, most_queries, [&](Range queries) { forward_chunk(s, head, sight, queries, workspace); });
  });
}

#define CAROUSEL_ATTENTION(T)                                                                          \
  template void attention_forward(const AttentionShape&, const Heads<const T>&, const Heads<const T>&, \
                                  const Heads<const T>&, const Heads<T>&, T*);
CAROUSEL_ATTENTION(float)
CAROUSEL_ATTENTION(double)
#undef CAROUSEL_ATTENTION

}  // namespace carousel::kernels
