// The machine's own speed at large float products: OpenBLAS called directly, so that the figure stays what it is
// whatever our library does; and the same product through Tensor.
//   sgemm_bench [--size 2048] [--seconds 1] [--threads N]
// Prints one JSON line. One product of size^3 takes 2 size^3 floating-point operations; the median product counts.

#include <carousel/tensor/matmul.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>

#include <cblas.h>

#include <functional>

#include "common/options.h"
#include "measure.h"

namespace {

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::examples;

struct BenchOptions {
  int64_t size = 2048;
  double seconds = 1;
  int64_t threads;
};

double gflops(const BenchOptions& options, const std::function<void()>& product) {
  product();  // threads are started, memory is touched
  const auto n = static_cast<double>(options.size);
  return 2 * n * n * n / median(call_times(options.seconds, product)) * 1e-9;
}

void run(const BenchOptions& options) {
  set_threads(static_cast<int>(options.threads));
  openblas_set_num_threads(static_cast<int>(options.threads));
  Rng rng(1);
  const Shape square{options.size, options.size};
  const Tensor a = rng.normal(square), b = rng.normal(square);
  Tensor c(square, DType::float32);
  const auto n = static_cast<blasint>(options.size);
  const float* const left = a.data<float>();
  const float* const right = b.data<float>();
  float* const result = c.mutable_data<float>();
  const double of_blas = gflops(options, [=] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, left, n, right, n, 0, result, n);
  });
  const double of_tensors = gflops(options, [&a, &b] { matmul(a, b); });
  print_line({{"gflops", rounded(of_blas, 1)},
              {"matmul_gflops", rounded(of_tensors, 1)},
              {"size", options.size},
              {"threads", options.threads},
              {"blas", runtime_info().blas},
              {"blas_kernel", runtime_info().blas_kernel}});
}

Command bench_command(BenchOptions& options) {
  return {.help = "Speed of large float products; prints one JSON line",
          .groups = {{"Measurement",
                      {{.name = "size", .target = &options.size, .help = "N", .minimum = 1, .maximum = 16384},
                       {.name = "seconds", .target = &options.seconds, .help = "time", .minimum = 0, .maximum = 3600},
                       threads_field(options.threads)}}},
          .run = [&options] {
            run(options);
            return 0;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options{.threads = threads()};
  return run_program({.name = "sgemm_bench", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
