#pragma once

#include <carousel/tensor/kernels/attention.h>

#include <algorithm>

/// Inside the attention kernels: which query sees which key.
namespace carousel::kernels {

/// Positions begin, .. end - 1.
struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Calls `body` for ranges of `length` positions, the last one shorter, in order.
template <class Body>
void for_each_block(Range range, int64_t length, const Body& body) {
  for (int64_t begin = range.begin; begin < range.end; begin += length) {
    body(Range{begin, std::min(range.end, begin + length)});
  }
}

/// Calls `body` for every longest run of positions in `range` for which `holds(position)`.
template <class Holds, class Body>
void for_each_run(Range range, const Holds& holds, const Body& body) {
  for (int64_t i = range.begin; i < range.end;) {
    if (!holds(i)) {
      ++i;
      continue;
    }
    Range run{i, i + 1};
    while (run.end < range.end && holds(run.end)) ++run.end;
    body(run);
    i = run.end;
  }
}

enum class Seen { nothing, part, everything };

/// What the queries of one row of the batch see.
class Sight {
 public:
  Sight(const AttentionShape& shape, int64_t row)
      : s_(shape),
        first_(shape.first != nullptr ? shape.first + row * shape.queries : nullptr),
        visible_(shape.visible != nullptr ? shape.visible + row * shape.visible_row : nullptr) {}

  /// The keys that `query` sees if they are visible.
  Range reach(int64_t query) const {
    return {first_ != nullptr ? std::max<int64_t>(first_[query], 0) : 0, std::max<int64_t>(end(query), 0)};
  }
  /// Where its reach ends; negative when all keys lie in its future.
  int64_t end(int64_t query) const { return s_.causal ? s_.keys - s_.queries + query + 1 : s_.keys; }
  /// By how much that is further for the next query.
  int64_t end_step() const { return s_.causal ? 1 : 0; }

  /// Whether more is hidden than what lies behind the end of a query's reach.
  bool has_masks() const { return first_ != nullptr || visible_ != nullptr; }

  bool sees(int64_t query, int64_t key) const {
    const Range keys = reach(query);
    return key >= keys.begin && key < keys.end && visible(query, key);
  }

  /// How much of `keys` the queries see. `part` may be said where it is more or less.
  Seen of(Range queries, Range keys) const {
    int64_t earliest = 0, latest = 0;
    if (first_ != nullptr) {
      const auto [low, high] = std::minmax_element(first_ + queries.begin, first_ + queries.end);
      earliest = *low;
      latest = *high;
    }
    if (keys.end <= earliest || keys.begin >= reach(queries.end - 1).end) return Seen::nothing;
    const bool reached = keys.begin >= latest && keys.end <= reach(queries.begin).end;
    if (visible_ == nullptr) return reached ? Seen::everything : Seen::part;
    if (s_.visible_query != 0 && queries.size() > 1) return Seen::part;
    const int64_t count =
        std::count(visible_of(queries.begin) + keys.begin, visible_of(queries.begin) + keys.end, true);
    if (count == 0) return Seen::nothing;
    return reached && count == keys.size() ? Seen::everything : Seen::part;
  }

  /// Writes `value` to x for every pair that does not see each other; x holds a number a pair, at these distances.
  template <class T>
  void hide(Range queries, Range keys, T value, T* x, int64_t query_distance, int64_t key_distance) const {
    for (int64_t i = queries.begin; i < queries.end; ++i) {
      T* const of_query = x + (i - queries.begin) * query_distance;
      const auto hide_key = [&](int64_t j) { of_query[(j - keys.begin) * key_distance] = value; };
      const Range all = reach(i);
      const int64_t begin = std::clamp(all.begin, keys.begin, keys.end), end = std::clamp(all.end, begin, keys.end);
      for (int64_t j = keys.begin; j < begin; ++j) hide_key(j);
      for (int64_t j = end; j < keys.end; ++j) hide_key(j);
      for (int64_t j = begin; j < end && visible_ != nullptr; ++j) {
        if (!visible(i, j)) hide_key(j);
      }
    }
  }

 private:
  const bool* visible_of(int64_t query) const { return visible_ + query * s_.visible_query; }
  bool visible(int64_t query, int64_t key) const { return visible_ == nullptr || visible_of(query)[key]; }

  const AttentionShape& s_;
  const int64_t* const first_;
  const bool* const visible_;
};

}  // namespace carousel::kernels
