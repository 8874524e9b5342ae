#pragma once

#include <string>

namespace carousel::kernels {

/// The instruction set that the SIMD kernels use on this processor, by Highway's name: "AVX2".
std::string simd_target();

}  // namespace carousel::kernels
