#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace carousel {

/// Element types: numbers in float32 or float64, tokens and positions in int64, masks in boolean. Operations never
/// promote: mixing types is an error, `Tensor::to` converts.
enum class DType : uint8_t { float32, float64, int64, boolean };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return 4;
    case DType::boolean: return 1;
    default: return 8;
  }
}

constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::int64: return "int64";
    default: return "bool";
  }
}

constexpr bool is_floating(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

template <class T>
inline constexpr bool always_false = false;

/// The DType of a C++ type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::float64;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return DType::int64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return DType::boolean;
  } else {
    static_assert(always_false<T>, "a tensor holds float, double, int64_t or bool");
  }
}

}  // namespace carousel
