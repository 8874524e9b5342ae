#pragma once

#include <carousel/tensor/dtype.h>
#include <carousel/tensor/error.h>

namespace carousel {

/// Calls `body(T{})` with the C++ type of `dtype`; the value only carries the type.
template <class Body>
decltype(auto) dispatch_all(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::float32: return body(float{});
    case DType::float64: return body(double{});
    case DType::int64: return body(int64_t{});
    default: return body(bool{});
  }
}

/// The same for float32, float64 and int64; throws ValueError naming `operation` for bool.
template <class Body>
decltype(auto) dispatch_numeric(std::string_view operation, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::float32: return body(float{});
    case DType::float64: return body(double{});
    case DType::int64: return body(int64_t{});
    default: throw ValueError(fmt::format("[{}] needs numbers: got bool", operation));
  }
}

/// The same for float32 and float64; throws ValueError naming `operation` for the others.
template <class Body>
decltype(auto) dispatch_floating(std::string_view operation, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::float32: return body(float{});
    case DType::float64: return body(double{});
    default: throw ValueError(fmt::format("[{}] needs float32 or float64: got {}", operation, to_string(dtype)));
  }
}

}  // namespace carousel
