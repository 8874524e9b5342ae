#include <carousel/tensor/kernels/dropout.h>
#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/random.h>

#include <algorithm>

#ifndef CAROUSEL_DROPOUT_ROW  // once, while the rest of this file is compiled for each instruction set
#define CAROUSEL_DROPOUT_ROW
namespace carousel::kernels {

/// Where the random numbers of a row begin: block i of four has the counter {i, row, step, apart}.
struct DropoutRow {
  uint32_t row, step, apart;
  uint32_t key[2];
  uint32_t limit;  // numbers below it drop
};

}  // namespace carousel::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "carousel/tensor/kernels/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace carousel::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint32_t>;
using VWords = hn::Vec<Words>;

/// The high halves of x * factor.
HWY_INLINE VWords multiply_high(VWords x, uint32_t factor) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(Words(), static_cast<uint32_t>(uint64_t{hn::GetLane(x)} * factor >> 32));
#else
  const hn::RepartitionToWide<Words> wide;
  const VWords by = hn::Set(Words(), factor);
  const auto even = hn::MulEven(x, by);
  const auto odd = hn::MulEven(hn::BitCast(Words(), hn::ShiftRight<32>(hn::BitCast(wide, x))), by);
  return hn::OddEven(hn::BitCast(Words(), odd), hn::BitCast(Words(), hn::ShiftRight<32>(even)));
#endif
}

/// philox of random.h for as many blocks as a register has lanes; to[4 i ..] are the words of block first + i.
HWY_INLINE void philox_blocks(const DropoutRow& r, uint32_t first, uint32_t* to) {
  const Words d;
  VWords c0 = hn::Iota(d, first), c1 = hn::Set(d, r.row), c2 = hn::Set(d, r.step), c3 = hn::Set(d, r.apart);
  uint32_t key0 = r.key[0], key1 = r.key[1];
  for (int round = 0; round < Philox::rounds; ++round) {
    constexpr uint32_t for_a = Philox::multipliers[0], for_b = Philox::multipliers[1];
    const VWords a_high = multiply_high(c0, for_a), a_low = hn::Mul(c0, hn::Set(d, for_a));
    const VWords b_high = multiply_high(c2, for_b), b_low = hn::Mul(c2, hn::Set(d, for_b));
    c0 = hn::Xor(hn::Xor(b_high, c1), hn::Set(d, key0));
    c1 = b_low;
    c2 = hn::Xor(hn::Xor(a_high, c3), hn::Set(d, key1));
    c3 = a_low;
    key0 += Philox::key_steps[0];
    key1 += Philox::key_steps[1];
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, to);
}

template <class T>
void dropout_row_of(const DropoutRow& r, T scale, int64_t features, const T* from, T* to) {
  HWY_ALIGN uint32_t numbers[4 * hn::MaxLanes(Words())];
  const auto at_once = static_cast<int64_t>(4 * hn::Lanes(Words()));
  for (int64_t first = 0; first < features; first += at_once) {
    philox_blocks(r, static_cast<uint32_t>(first / 4), numbers);
    const int64_t count = std::min(at_once, features - first);
    for (int64_t j = 0; j < count; ++j) to[first + j] = numbers[j] < r.limit ? 0 : from[first + j] * scale;
  }
}

void dropout_row_float(const DropoutRow& r, float scale, int64_t features, const float* from, float* to) {
  dropout_row_of(r, scale, features, from, to);
}
void dropout_row_double(const DropoutRow& r, double scale, int64_t features, const double* from, double* to) {
  dropout_row_of(r, scale, features, from, to);
}

}  // namespace carousel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace carousel::kernels {

HWY_EXPORT(dropout_row_float);
HWY_EXPORT(dropout_row_double);

namespace {

void dropout_row(const DropoutRow& r, float scale, int64_t features, const float* from, float* to) {
  HWY_DYNAMIC_DISPATCH(dropout_row_float)(r, scale, features, from, to);
}
void dropout_row(const DropoutRow& r, double scale, int64_t features, const double* from, double* to) {
  HWY_DYNAMIC_DISPATCH(dropout_row_double)(r, scale, features, from, to);
}

constexpr uint64_t apart_from_rng = uint64_t{1} << 63;  // of the counter: an Rng of the same seed never gets there

std::array<uint32_t, 4> mask_block(const DropoutMask& mask, int64_t step, int64_t row, int64_t block) {
  const auto place = static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(block);
  return philox_block(mask.key, place, apart_from_rng | static_cast<uint64_t>(mask.first_step + step));
}

/// Numbers below it drop. The probability is below 1.
uint64_t drop_below(const DropoutMask& mask) { return static_cast<uint64_t>(mask.probability * 0x1p32); }

DropoutRow row_of(const DropoutMask& mask, int64_t step, int64_t row) {
  const uint64_t turn = apart_from_rng | static_cast<uint64_t>(mask.first_step + step);
  return {.row = static_cast<uint32_t>(row),
          .step = static_cast<uint32_t>(turn),
          .apart = static_cast<uint32_t>(turn >> 32),
          .key = {static_cast<uint32_t>(mask.key), static_cast<uint32_t>(mask.key >> 32)},
          .limit = static_cast<uint32_t>(drop_below(mask))};
}

template <class T>
T keep_scale(const DropoutMask& mask) {
  return static_cast<T>(1 / (1 - mask.probability));
}

}  // namespace

template <class T>
void dropout(const DropoutMask& mask, int64_t steps, int64_t rows, int64_t features, const T* x, StepLayout x_layout,
             T* y, StepLayout y_layout) {
  const T scale = keep_scale<T>(mask);
  const int64_t grain = std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, features));
  parallel_ranges(steps * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t step = i / rows, row = i % rows;
      dropout_row(row_of(mask, step, row), scale, features, x + step * x_layout.step_stride + row * x_layout.row_stride,
                  y + step * y_layout.step_stride + row * y_layout.row_stride);
    }
  });
}

template void dropout(const DropoutMask&, int64_t, int64_t, int64_t, const float*, StepLayout, float*, StepLayout);
template void dropout(const DropoutMask&, int64_t, int64_t, int64_t, const double*, StepLayout, double*, StepLayout);

namespace plain {

template <class T>
void dropout(const DropoutMask& mask, int64_t steps, int64_t rows, int64_t features, const T* x, StepLayout x_layout,
             T* y, StepLayout y_layout) {
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < features; ++j) {
        const bool dropped = mask_block(mask, step, row, j / 4)[j % 4] < drop_below(mask);
        y[step * y_layout.step_stride + row * y_layout.row_stride + j] =
            dropped ? 0 : x[step * x_layout.step_stride + row * x_layout.row_stride + j] * keep_scale<T>(mask);
      }
    }
  }
}

template void dropout(const DropoutMask&, int64_t, int64_t, int64_t, const float*, StepLayout, float*, StepLayout);
template void dropout(const DropoutMask&, int64_t, int64_t, int64_t, const double*, StepLayout, double*, StepLayout);

}  // namespace plain
}  // namespace carousel::kernels
#endif  // HWY_ONCE
