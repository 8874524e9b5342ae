#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/random.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace carousel::kernels {
namespace {

__extension__ using uint128 = unsigned __int128;

struct HighLow {
  uint32_t high, low;
};

HighLow multiply(uint32_t a, uint32_t b) {
  const uint64_t product = static_cast<uint64_t>(a) * b;
  return {static_cast<uint32_t>(product >> 32), static_cast<uint32_t>(product)};
}

/// Calls `body(block, out, n)` for each block of `per_block` elements; the last one may be cut short (n).
template <class T, class Body>
void for_each_block(T* out, int64_t count, int64_t per_block, const Body& body) {
  constexpr int64_t grain = 1024;  // blocks; each takes some ten nanoseconds
  parallel_ranges((count + per_block - 1) / per_block, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      body(static_cast<uint64_t>(b), out + b * per_block, std::min(per_block, count - b * per_block));
    }
  });
}

/// The number in [0, 1) that word `i` of a block makes.
template <class T>
T unit_at(const std::array<uint32_t, 4>& block, int64_t i) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(block[i] >> 8) * 0x1p-24F;
  } else {
    return to_unit(half(block, static_cast<int>(i)));
  }
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < Philox::rounds; ++round) {
    const HighLow a = multiply(counter[0], Philox::multipliers[0]);
    const HighLow b = multiply(counter[2], Philox::multipliers[1]);
    counter = {b.high ^ counter[1] ^ key[0], b.low, a.high ^ counter[3] ^ key[1], a.low};
    key[0] += Philox::key_steps[0];
    key[1] += Philox::key_steps[1];
  }
  return counter;
}

template <class T>
void fill_uniform(T* out, int64_t count, uint64_t seed, uint64_t first_block, double low, double high) {
  const T top = low < high ? std::nextafter(static_cast<T>(high), static_cast<T>(low)) : static_cast<T>(high);
  for_each_block(out, count, uniforms_per_block<T>, [=](uint64_t b, T* to, int64_t n) {
    const auto block = philox_block(seed, first_block + b);
    for (int64_t i = 0; i < n; ++i) {
      to[i] = std::min(static_cast<T>(low + (high - low) * static_cast<double>(unit_at<T>(block, i))), top);
    }
  });
}

template <class T>
void fill_normal(T* out, int64_t count, uint64_t seed, uint64_t first_block, double mean, double deviation) {
  constexpr double two_pi = 6.283185307179586477;
  for_each_block(out, count, normals_per_block, [=](uint64_t b, T* to, int64_t n) {
    const auto block = philox_block(seed, first_block + b);
    const double radius = std::sqrt(-2 * std::log(1 - to_unit(half(block, 0))));  // 1 - u is never 0
    const double angle = two_pi * to_unit(half(block, 1));
    to[0] = static_cast<T>(mean + deviation * radius * std::cos(angle));
    if (n > 1) to[1] = static_cast<T>(mean + deviation * radius * std::sin(angle));
  });
}

int64_t integer_at(uint64_t seed, uint64_t block, int64_t low, uint64_t range) {
  const uint64_t reject_below = -range % range;  // 2^64 mod range: what makes some results too likely by one
  for (uint64_t attempt = 0;; ++attempt) {
    const auto words = philox_block(seed, block, attempt);
    for (int which = 0; which < 2; ++which) {
      const uint128 product = static_cast<uint128>(half(words, which)) * range;
      if (static_cast<uint64_t>(product) >= reject_below) {
        return static_cast<int64_t>(static_cast<uint64_t>(low) + static_cast<uint64_t>(product >> 64));
      }
    }
  }
}

void fill_integers(int64_t* out, int64_t count, uint64_t seed, uint64_t first_block, int64_t low, uint64_t range) {
  for_each_block(out, count, integers_per_block,
                 [=](uint64_t b, int64_t* to, int64_t) { *to = integer_at(seed, first_block + b, low, range); });
}

template void fill_uniform<float>(float*, int64_t, uint64_t, uint64_t, double, double);
template void fill_uniform<double>(double*, int64_t, uint64_t, uint64_t, double, double);
template void fill_normal<float>(float*, int64_t, uint64_t, uint64_t, double, double);
template void fill_normal<double>(double*, int64_t, uint64_t, uint64_t, double, double);

}  // namespace carousel::kernels
