#pragma once

#include <carousel/tensor/kernels/attention.h>
#include <carousel/tensor/kernels/attention_rows.h>
#include <carousel/tensor/kernels/attention_sight.h>
#include <carousel/tensor/kernels/packed_matrix.h>

/// Inside the attention kernels: the products of a tile of queries with a block of keys.
namespace carousel::kernels {

// A block of keys is packed once for all the queries that a task has; these go by it in tiles, whose scores stay in the
// cache. On the diagonal of a causal mask a tile is cut further, and what lies above it is left out.
inline constexpr int64_t block_keys = 128, tile_queries = 64, diagonal_step = 16;

// So few queries do not repay packing the keys: they read them as they lie.
inline constexpr int64_t few_queries = 4;

/// Consecutive rows of one head.
template <class T>
struct HeadRows {
  T* data;
  int64_t stride;

  T* at(int64_t row) const { return data + row * stride; }
  HeadRows from(int64_t row) const { return {at(row), stride}; }
};

template <class T>
HeadRows<T> rows_of(const Heads<T>& heads, int64_t b, int64_t a) {
  return {heads.at(b, a, 0), heads.step};
}

template <class T>
void fill_rows(Range range, int64_t width, const HeadRows<T>& to) {
  for (int64_t i = range.begin; i < range.end; ++i) std::fill_n(to.at(i), width, T{0});
}

/// Queries and keys, which of them see each other, and products over those that do.
class Tile {
 public:
  Tile(const Sight& sight, Range queries, Range keys)
      : sight_(sight), queries_(queries), keys_(keys), seen_(sight.of(queries, keys)) {}

  bool empty() const { return seen_ == Seen::nothing; }
  Range queries() const { return queries_; }

  template <class T>
  ScoreTile<T> scores(T* data) const {
    return {queries_.size(),  keys_.size(), block_keys, data, sight_.end(queries_.begin) - keys_.begin,
            sight_.end_step()};
  }

  /// Writes `value` for the pairs that do not see each other although the ends of the rows leave them in.
  template <class T>
  void hide(T value, T* scores) const {
    if (seen_ == Seen::part && sight_.has_masks()) sight_.hide(queries_, keys_, value, scores, block_keys, 1);
  }

  /// scores[r][j] = row r . key j; `block` holds the keys transposed, or nothing for few queries.
  template <class T>
  void dots(const HeadRows<const T>& rows, const HeadRows<const T>& keys, const PackedBlock<T>* block, int64_t width,
            T* scores) const {
    if (block == nullptr) {
      for (int64_t r = 0; r < queries_.size(); ++r) {
        dot_rows(keys_.size(), width, rows.at(r), 0, keys.data, keys.stride, scores + r * block_keys);
      }
      return;
    }
    for_each_step(queries_.size(), [&](Range step) {
      block->multiply({0, width, columns_of(step)}, step.size(), {rows.at(step.begin), rows.stride},
                      scores + step.begin * block_keys, block_keys, Into::overwrite);
    });
  }

  /// to[r] += sum over keys j of weights[r][j] row j; `block` holds the rows, or nothing for few queries. The weights
  /// of what is not seen are zero: where 0 times a row might not be zero, only what is seen is taken.
  template <class T>
  void sum_over_keys(const T* weights, const HeadRows<const T>& rows, const PackedBlock<T>* block, int64_t width,
                     const HeadRows<T>& to) const {
    const bool all = seen_ == Seen::everything || (block != nullptr && finite(keys_.size(), width, rows));
    if (all && block != nullptr) {
      for_each_step(queries_.size(), [&](Range step) {
        block->multiply({0, columns_of(step), width}, step.size(), {weights + step.begin * block_keys, block_keys},
                        to.at(step.begin), to.stride, Into::accumulate);
      });
      return;
    }
    for (int64_t r = 0; r < queries_.size(); ++r) {
      const auto add = [&](Range run) {
        const int64_t first = run.begin - keys_.begin;
        add_rows(run.size(), width, weights + r * block_keys + first, rows.at(first), rows.stride, to.at(r));
      };
      for_each_run(
          keys_, [&](int64_t key) { return all || sight_.sees(queries_.begin + r, key); }, add);
    }
  }

  /// to[j] += sum over queries r of weights[r][j] row r; `block` holds the rows. Else the same.
  template <class T>
  void sum_over_queries(const T* weights, const HeadRows<const T>& rows, const PackedBlock<T>& block, int64_t width,
                        const HeadRows<T>& to) const {
    if (seen_ == Seen::everything || finite(queries_.size(), width, rows)) {
      const ScoreTile<const T> scores = this->scores(weights);
      for_each_step(keys_.size(), [&](Range step) {
        int64_t first = 0;
        while (first < scores.rows && scores.end(first) <= step.begin) ++first;
        if (first == scores.rows) return;
        block.multiply({first, scores.rows - first, width}, step.size(),
                       {scores.row(first) + step.begin, 1, block_keys}, to.at(step.begin), to.stride, Into::accumulate);
      });
      return;
    }
    for (int64_t r = 0; r < queries_.size(); ++r) {
      for (int64_t j = 0; j < keys_.size(); ++j) {
        if (!sight_.sees(queries_.begin + r, keys_.begin + j)) continue;
        add_rows(1, width, weights + r * block_keys + j, rows.at(r), 0, to.at(j));
      }
    }
  }

 private:
  /// Whether 0 times any number is 0.
  template <class T>
  static bool finite(int64_t count, int64_t width, const HeadRows<const T>& rows) {
    return rows_finite(count, width, rows.data, rows.stride);
  }

  /// Calls `body` for all `count` positions at once, or on the diagonal a few at a time.
  template <class Body>
  void for_each_step(int64_t count, const Body& body) const {
    for_each_block({0, count}, seen_ == Seen::everything ? count : diagonal_step, body);
  }

  /// The keys that any of these queries reaches.
  int64_t columns_of(Range step) const {
    return std::clamp<int64_t>(sight_.end(queries_.begin + step.end - 1) - keys_.begin, 0, keys_.size());
  }

  const Sight& sight_;
  Range queries_, keys_;
  Seen seen_;
};

}  // namespace carousel::kernels
