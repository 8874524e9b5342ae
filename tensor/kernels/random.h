#pragma once

#include <array>
#include <cstdint>

/// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011) and arrays
/// filled from it. The key is the seed; the counter's low half is the block's position in the stream, its high half is
/// 0, or the attempt where a number had to be drawn again. Arrays are filled in parallel; every element depends on the
/// seed and its position alone, so neither the thread count nor the chunks show in the result.
namespace carousel::kernels {

/// The constants of Philox-4x32-10.
struct Philox {
  static constexpr int rounds = 10;
  static constexpr uint32_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
  static constexpr uint32_t key_steps[2] = {0x9E3779B9, 0xBB67AE85};  // of the golden ratio, and of sqrt(3) - 1
};

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Block `position` of stream `seed`.
inline std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t position, uint64_t attempt = 0) {
  return philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), static_cast<uint32_t>(attempt),
                 static_cast<uint32_t>(attempt >> 32)},
                {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

/// The first or second half of a block.
inline uint64_t half(const std::array<uint32_t, 4>& block, int which) {
  return block[2 * which] | static_cast<uint64_t>(block[2 * which + 1]) << 32;
}

/// In [0, 1), a multiple of 2^-53.
inline double to_unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// How many elements one block serves, and so how many blocks an array takes.
template <class T>
inline constexpr int64_t uniforms_per_block = 16 / sizeof(T);
inline constexpr int64_t normals_per_block = 2;
inline constexpr int64_t integers_per_block = 1;

/// out[i] = low + (high - low) u, u in [0, 1) with 24 bits (float) or 53 (double); below `high` even after rounding,
/// unless low = high.
template <class T>
void fill_uniform(T* out, int64_t count, uint64_t seed, uint64_t first_block, double low, double high);

/// out[i] = mean + deviation z; two z from each block by Box and Muller's formula, in double: sqrt(-2 ln u) times
/// cos and sin of 2 pi v. Beyond |z| = 8.57 there is nothing (u has 53 bits).
template <class T>
void fill_normal(T* out, int64_t count, uint64_t seed, uint64_t first_block, double mean, double deviation);

/// low + k, k in [0, range) without bias (Lemire: Fast random integer generation in an interval; 2019). `range` > 0.
int64_t integer_at(uint64_t seed, uint64_t block, int64_t low, uint64_t range);
void fill_integers(int64_t* out, int64_t count, uint64_t seed, uint64_t first_block, int64_t low, uint64_t range);

}  // namespace carousel::kernels
