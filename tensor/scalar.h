#pragma once

#include <carousel/tensor/dtype.h>
#include <carousel/tensor/error.h>

#include <array>
#include <cmath>
#include <cstring>

/// Numbers that enter tensors as a double. Not part of the public interface.
namespace carousel {

/// Whether `value`, its fraction dropped, is an int64.
inline bool fits_int64(double value) { return value >= -0x1p63 && value < 0x1p63; }

/// `value` as an element; throws ValueError where int64 or bool cannot hold it exactly.
template <class T>
T scalar_cast(std::string_view operation, double value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    check<ValueError>(fits_int64(value) && std::trunc(value) == value, operation,
                      "a number for int64 must be whole and fit into 64 bits: got {}", value);
  } else if constexpr (std::is_same_v<T, bool>) {
    check<ValueError>(value == 0 || value == 1, operation, "a number for bool must be 0 or 1: got {}", value);
  }
  return static_cast<T>(value);
}

/// One element of any type, as an operand.
class Scalar {
 public:
  template <class T>
  explicit Scalar(T value) {
    std::memcpy(bytes_.data(), &value, sizeof value);
  }
  Scalar(std::string_view operation, double value, DType dtype);
  char* data() { return bytes_.data(); }

 private:
  alignas(8) std::array<char, 8> bytes_;
};

}  // namespace carousel
