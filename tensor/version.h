#pragma once

#include <string_view>

namespace carousel {

/// The version of the library that the program was linked with, "0.1.0".
std::string_view version();

}  // namespace carousel
