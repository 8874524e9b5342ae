#include <carousel/tensor/kernels/float_mode.h>
#include <carousel/tensor/kernels/parallel.h>

namespace carousel::kernels {

void set_float_mode(FloatMode mode) {
  mode.apply();
  parallel_tasks(thread_count(), [](int64_t) {});  // every region begins by handing the caller's mode on
}

}  // namespace carousel::kernels
