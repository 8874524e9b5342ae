#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace carousel {

/// Every error that Carousel throws. The text names the operation, the rule that was broken and the values that
/// broke it: `[matmul] inner sizes must match: got [4, 3] and [5, 2]`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ShapeError : public Error {  ///< sizes that do not fit together
  using Error::Error;
};
class IndexError : public Error {  ///< a position outside its range
  using Error::Error;
};
class ValueError : public Error {  ///< an argument outside its domain, or an object in the wrong condition for a call
  using Error::Error;
};
class NonFiniteError : public ValueError {  ///< a loss or gradient that is NaN or infinite
  using ValueError::ValueError;
};
class FormatError : public Error {  ///< a file or text that is not what it should be
  using Error::Error;
};
class IoError : public Error {  ///< the operating system said no
  using Error::Error;
};

/// Throws `E` with the text `[operation] rule...` unless `condition` holds. On in every build type.
template <class E, class... Args>
void check(bool condition, std::string_view operation, fmt::format_string<Args...> rule, Args&&... args) {
  if (!condition) [[unlikely]] {
    throw E(fmt::format("[{}] ", operation) + fmt::format(rule, std::forward<Args>(args)...));
  }
}

}  // namespace carousel
