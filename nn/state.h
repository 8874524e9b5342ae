#pragma once

#include <carousel/autograd/variable.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carousel {

/// What a sequence layer remembers between steps: a small named set of Variables, each with B rows (Elman: h; LSTM:
/// h, c), and of named int64 bookkeeping (positions). A value: passed in and returned, never kept inside a layer.
/// Gradients flow in through the initial state and out through the final one unless the caller detaches.
class State {
 public:
  State() = default;
  State(std::initializer_list<std::pair<std::string, Variable>> values) : values_(values) {}

  const Variable& operator[](std::string_view name) const;  ///< throws IndexError naming what there is
  void set(std::string name, Variable value);               ///< adds or replaces
  const Tensor& count(std::string_view name) const;         ///< int64 bookkeeping
  void set_count(std::string name, Tensor value);

  // Of a temporary the lists are returned by value, so that `for (.. : layer.initial_state(3).values())` is safe.
  const std::vector<std::pair<std::string, Variable>>& values() const& { return values_; }
  const std::vector<std::pair<std::string, Tensor>>& counts() const& { return counts_; }
  std::vector<std::pair<std::string, Variable>> values() && { return std::move(values_); }
  std::vector<std::pair<std::string, Tensor>> counts() && { return std::move(counts_); }

  State detach() const;
  /// The entries under `prefix` + ".", with the prefix removed; and the reverse. How a stack keeps one State.
  State part(std::string_view prefix) const;
  void set_part(std::string_view prefix, const State& part);

 private:
  std::vector<std::pair<std::string, Variable>> values_;
  std::vector<std::pair<std::string, Tensor>> counts_;
};

}  // namespace carousel
