#include <carousel/tensor/error.h>
#include <carousel/tensor/kernels/blas.h>
#include <carousel/tensor/kernels/blas_check.h>
#include <carousel/tensor/kernels/float_mode.h>
#include <carousel/tensor/kernels/simd_target.h>
#include <carousel/tensor/kernels/threads.h>
#include <carousel/tensor/runtime.h>

namespace carousel {

int threads() { return kernels::thread_count(); }

int available_threads() { return kernels::available_threads(); }

void set_threads(int count) {
  check<ValueError>(1 <= count && count <= 1024, "set_threads", "the number of threads must be in [1, 1024]: got {}",
                    count);
  kernels::set_thread_count(count);
}

FlushDenormals::FlushDenormals() : before_(kernels::FloatMode::of_this_thread().bits()) {
  kernels::FloatMode::flushing().apply();
}

FlushDenormals::~FlushDenormals() { kernels::FloatMode::of_bits(before_).apply(); }

RuntimeInfo runtime_info() {
  return {.blas = kernels::blas_name(),
          .blas_kernel = kernels::blas_kernel(),
          .simd = kernels::simd_target(),
          .threads = threads()};
}

std::string to_string(const RuntimeInfo& info) {
  return fmt::format("BLAS {}, kernel {}; SIMD {}; {} thread{}", info.blas, info.blas_kernel, info.simd, info.threads,
                     info.threads == 1 ? "" : "s");
}

void check_blas() { kernels::check_blas(); }

}  // namespace carousel
