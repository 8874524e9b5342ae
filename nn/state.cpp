#include <carousel/nn/state.h>

#include <carousel/nn/fields.h>

#include <algorithm>

namespace carousel {
namespace {

template <class T>
auto find(std::vector<std::pair<std::string, T>>& entries, std::string_view name) {
  return std::find_if(entries.begin(), entries.end(), [name](const auto& entry) { return entry.first == name; });
}

template <class T>
const T& get(const std::vector<std::pair<std::string, T>>& entries, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [held, value] : entries) {
    if (held == name) return value;
    names.push_back(held);
  }
  throw IndexError(fmt::format("[State] {}", unknown_name("entry", name, names)));
}

template <class T>
void put(std::vector<std::pair<std::string, T>>& entries, std::string name, T value) {
  const auto place = find(entries, name);
  if (place != entries.end()) {
    place->second = std::move(value);
  } else {
    entries.emplace_back(std::move(name), std::move(value));
  }
}

// `name` without a leading `prefix`, or "" when it does not begin so.
std::string_view below(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix ? name.substr(prefix.size()) : std::string_view();
}

}  // namespace

const Variable& State::operator[](std::string_view name) const { return get(values_, name); }
void State::set(std::string name, Variable value) { put(values_, std::move(name), std::move(value)); }
const Tensor& State::count(std::string_view name) const { return get(counts_, name); }
void State::set_count(std::string name, Tensor value) { put(counts_, std::move(name), std::move(value)); }

State State::detach() const {
  State detached = *this;
  for (auto& [name, value] : detached.values_) value = value.detach();
  return detached;
}

State State::part(std::string_view prefix) const {
  const std::string begin = std::string(prefix) + ".";
  State part;
  for (const auto& [name, value] : values_) {
    if (const std::string_view rest = below(name, begin); !rest.empty()) part.values_.emplace_back(rest, value);
  }
  for (const auto& [name, value] : counts_) {
    if (const std::string_view rest = below(name, begin); !rest.empty()) part.counts_.emplace_back(rest, value);
  }
  return part;
}

void State::set_part(std::string_view prefix, const State& part) {
  const std::string begin = std::string(prefix) + ".";
  for (const auto& [name, value] : part.values_) set(begin + name, value);
  for (const auto& [name, value] : part.counts_) set_count(begin + name, value);
}

}  // namespace carousel
