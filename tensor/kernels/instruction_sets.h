#pragma once

/// Which instruction sets the SIMD kernels are compiled for; include it before any header of Highway. On x86-64 they
/// are AVX-512, AVX2 and the fallback: every processor since 2013 has AVX2, so SSSE3 and SSE4 would only cost compile
/// time. Scalable vectors (Arm SVE) cannot be kept in arrays, as the matrix tiles need; NEON serves there.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
