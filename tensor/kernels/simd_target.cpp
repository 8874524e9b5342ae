#include <carousel/tensor/kernels/instruction_sets.h>
#include <carousel/tensor/kernels/simd_target.h>

#include <hwy/highway.h>

namespace carousel::kernels {

std::string simd_target() {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);  // the best target is the lowest bit
}

}  // namespace carousel::kernels
