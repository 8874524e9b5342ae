#include "common/ngram.h"

#include <carousel/tensor/error.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace carousel::examples {

Ngrams::Ngrams(const Tensor& tokens, int64_t vocabulary, int64_t order)
    : vocabulary_(vocabulary),
      bits_(std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(vocabulary - 1))))) {
  check<ValueError>(vocabulary > 0 && order > 0, "Ngrams", "vocabulary and order must be positive: got {} and {}",
                    vocabulary, order);
  check<ShapeError>(tokens.rank() == 1, "Ngrams", "tokens must be [N]: got {}", to_string(tokens.shape()));
  const std::vector<int64_t> all = tokens.to_vector<int64_t>();
  for (const int64_t token : all) {
    check<IndexError>(token >= 0 && token < vocabulary, "Ngrams", "tokens must be in [0, {}): got {}", vocabulary,
                      token);
  }
  for (int64_t n = 1; n <= std::min<int64_t>(order, 64 / bits_); ++n) {
    const uint64_t mask = n * bits_ == 64 ? ~uint64_t{0} : (uint64_t{1} << (n * bits_)) - 1;
    std::vector<uint64_t> runs;
    uint64_t run = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      run = (run << bits_ | static_cast<uint64_t>(all[i])) & mask;
      if (static_cast<int64_t>(i) + 1 >= n) runs.push_back(run);
    }
    tables_.push_back(count(std::move(runs)));
  }
}

Ngrams::Table Ngrams::count(std::vector<uint64_t> runs) {
  std::sort(runs.begin(), runs.end());
  Table table;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i > 0 && runs[i] == runs[i - 1]) continue;
    table.runs.push_back(runs[i]);
    table.before.push_back(static_cast<int64_t>(i));
  }
  table.before.push_back(static_cast<int64_t>(runs.size()));
  return table;
}

std::vector<double> Ngrams::probabilities(std::span<const int64_t> context, int64_t token) const {
  double p = 1 / static_cast<double>(vocabulary_);
  std::vector<double> result;
  for (int64_t n = 1; n <= order(); ++n) {
    if (n - 1 <= std::ssize(context)) {
      uint64_t h = 0;
      for (const int64_t one : context.last(static_cast<size_t>(n - 1))) h = h << bits_ | static_cast<uint64_t>(one);
      const Table& table = tables_[static_cast<size_t>(n - 1)];
      const auto begin = std::lower_bound(table.runs.begin(), table.runs.end(), h << bits_);
      const uint64_t last = h << bits_ | ((uint64_t{1} << bits_) - 1);
      const auto end = std::upper_bound(begin, table.runs.end(), last);
      const auto found = std::lower_bound(begin, end, h << bits_ | static_cast<uint64_t>(token));
      const auto occurrences = [&table](auto from, auto to) {
        const auto at = [&table](auto i) { return table.before[static_cast<size_t>(i - table.runs.begin())]; };
        return static_cast<double>(at(to) - at(from));
      };
      const bool is_there = found != end && *found == (h << bits_ | static_cast<uint64_t>(token));
      const auto followers = static_cast<double>(end - begin);
      if (begin != end) {
        p = ((is_there ? occurrences(found, found + 1) : 0) + followers * p) / (occurrences(begin, end) + followers);
      }
    }
    result.push_back(p);
  }
  return result;
}

std::vector<double> Ngrams::losses(const Tensor& tokens) const {
  check<ShapeError>(tokens.rank() == 1 && tokens.numel() >= 2, "Ngrams", "tokens must be [N] with N >= 2: got {}",
                    to_string(tokens.shape()));
  const std::vector<int64_t> all = tokens.to_vector<int64_t>();
  const std::span<const int64_t> text(all);
  std::vector<double> sums(tables_.size());
  for (size_t i = 1; i < all.size(); ++i) {
    const size_t longest = std::min(i, tables_.size() - 1);
    const std::vector<double> p = probabilities(text.subspan(i - longest, longest), all[i]);
    for (size_t n = 0; n < sums.size(); ++n) sums[n] -= std::log(p[n]);
  }
  for (double& sum : sums) sum /= static_cast<double>(all.size() - 1);
  return sums;
}

}  // namespace carousel::examples
