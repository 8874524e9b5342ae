#pragma once

#include <string>

namespace carousel::examples {

/// Has gnuplot draw: it reads `script`, and what it writes becomes the file `path`, whole or not at all. Needs no
/// shell, and reads no settings of the user. Returns why there is no picture, or nothing: a picture is no reason to
/// fail.
std::string draw(const std::string& script, const std::string& path);

}  // namespace carousel::examples
