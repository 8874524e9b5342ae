#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace carousel {

/// A short list of sizes, strides or axes: at most `max_rank` numbers, kept in place so that making a Tensor
/// allocates nothing for its shape.
class Dims {
 public:
  static constexpr int max_rank = 8;

  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values);  ///< throws ShapeError past max_rank
  static Dims filled(int rank, int64_t value);     ///< throws ShapeError past max_rank

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return values_[i]; }
  int64_t& operator[](int i) { return values_[i]; }
  int64_t back() const { return values_[rank_ - 1]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }
  int64_t* begin() { return values_.data(); }
  int64_t* end() { return values_.data() + rank_; }

  void push_back(int64_t value);       ///< throws ShapeError past max_rank
  void insert(int at, int64_t value);  ///< before position `at`, 0 <= at <= rank()
  void erase(int at);

  bool operator==(const Dims& other) const;

 private:
  std::array<int64_t, max_rank> values_{};
  int rank_ = 0;
};

using Shape = Dims;

std::string to_string(const Dims& dims);  ///< "[2, 3]"

/// Product of the sizes; throws ShapeError when it does not fit into 63 bits or a size is negative.
int64_t numel(const Shape& shape);

/// Strides of a row-major array of this shape, in elements.
Dims contiguous_strides(const Shape& shape);

/// `axis` counted from the end when negative; throws IndexError naming `operation` outside [-rank, rank).
int normalize_axis(std::string_view operation, int64_t axis, int rank);

/// The common shape of NumPy's broadcasting rule; throws ShapeError naming `operation` and both shapes.
Shape broadcast_shapes(std::string_view operation, const Shape& a, const Shape& b);

}  // namespace carousel

/// `check<ShapeError>(ok, "add", "...: got {}", shape)` makes the text only when the check fails.
template <>
struct fmt::formatter<carousel::Dims> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::format_context::iterator format(const carousel::Dims& dims, fmt::format_context& context) const;
};
