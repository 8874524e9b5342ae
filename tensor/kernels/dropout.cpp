#include <carousel/tensor/kernels/dropout.h>
#include <carousel/tensor/kernels/parallel.h>
#include <carousel/tensor/kernels/random.h>

#include <algorithm>

namespace carousel::kernels {
namespace {

std::array<uint32_t, 4> mask_block(const DropoutMask& mask, int64_t step, int64_t row, int64_t block) {
  constexpr uint64_t apart_from_rng = uint64_t{1} << 63;  // an Rng of the same seed never gets there
  const auto place = static_cast<uint64_t>(row) << 32 | static_cast<uint64_t>(block);
  return philox_block(mask.key, place, apart_from_rng | static_cast<uint64_t>(mask.first_step + step));
}

/// Numbers below it drop; 2^32 would drop all.
uint64_t drop_below(const DropoutMask& mask) { return static_cast<uint64_t>(mask.probability * 0x1p32); }

template <class T>
T keep_scale(const DropoutMask& mask) {
  return static_cast<T>(1 / (1 - mask.probability));
}

}  // namespace

template <class T>
void dropout(const DropoutMask& mask, int64_t steps, int64_t rows, int64_t features, const T* x, StepLayout x_layout,
             T* y, StepLayout y_layout) {
  const uint64_t limit = drop_below(mask);
  const T scale = keep_scale<T>(mask);
  const int64_t grain = std::max<int64_t>(1, elementwise_grain / 4 / std::max<int64_t>(1, features));
  parallel_ranges(steps * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t step = i / rows, row = i % rows;
      const T* const from = x + step * x_layout.step_stride + row * x_layout.row_stride;
      T* const to = y + step * y_layout.step_stride + row * y_layout.row_stride;
      for (int64_t feature = 0; feature < features; feature += 4) {
        const auto numbers = mask_block(mask, step, row, feature / 4);
        const int64_t count = std::min<int64_t>(4, features - feature);
        for (int64_t j = 0; j < count; ++j) to[feature + j] = numbers[j] < limit ? 0 : from[feature + j] * scale;
      }
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
