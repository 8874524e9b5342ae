#include <carousel/optim/accumulate.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/reduce.h>

namespace carousel {

int64_t counted_targets(const Tensor& targets, const std::optional<int64_t>& ignore_index) {
  if (!ignore_index) return targets.numel();
  const Tensor ignored = equal(targets, static_cast<double>(*ignore_index));
  return targets.numel() - sum(ignored.to(DType::int64)).item<int64_t>();
}

double accumulate(const Variable& loss, const Share& share) {
  check<ValueError>(share.counted >= 0 && share.counted <= share.of_all, "accumulate",
                    "targets must be 0 <= counted <= of_all: got {} and {}", share.counted, share.of_all);
  if (share.counted == 0) return 0;
  if (share.counted == share.of_all) {  // alone: a product by 1 would only be one more operation
    loss.backward();
    return loss.value().item();
  }
  const Variable part = loss * (static_cast<double>(share.counted) / static_cast<double>(share.of_all));
  part.backward();
  return part.value().item();
}

}  // namespace carousel
