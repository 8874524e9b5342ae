// Time and memory of causal attention, forward and backward, over random numbers with heads of 64 floats.
//   attention_bench [--steps 16384] [--heads 1] [--threads N]
// Prints one JSON line. extra_mib is by how much the process grew at its largest beyond queries, keys and values: the
// result, its gradient, those of the three, and what the kernel works in. A matrix of scores would take steps^2 / 2^18.

#include <carousel/nn/attention.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>

#include "common/options.h"
#include "measure.h"

namespace {

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::examples;

struct BenchOptions {
  int64_t steps = 16384;
  int64_t heads = 1;
  int64_t threads;
};

double milliseconds(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

Variable random_heads(const BenchOptions& options, Rng& rng) {
  return Variable::parameter(rng.normal({1, options.heads, options.steps, 64}));
}

void run(const BenchOptions& options) {
  set_threads(static_cast<int>(options.threads));
  Rng rng(1);
  const Variable q = random_heads(options, rng), k = random_heads(options, rng), v = random_heads(options, rng);
  const double before = peak_rss_mib();
  const Clock::time_point start = Clock::now();
  const Variable y = scaled_dot_product_attention(q, k, v, {.causal = true});
  const Clock::time_point middle = Clock::now();
  y.backward(rng.normal(y.shape()));
  const Clock::time_point end = Clock::now();
  print_line({{"steps", options.steps},
              {"heads", options.heads},
              {"forward_ms", milliseconds(start, middle)},
              {"backward_ms", milliseconds(middle, end)},
              {"extra_mib", peak_rss_mib() - before}});
}

Command bench_command(BenchOptions& options) {
  return {.help = "Time and memory of attention; prints one JSON line",
          .groups = {{"Measurement",
                      {{.name = "steps", .target = &options.steps, .help = "T", .minimum = 1, .maximum = 1e6},
                       {.name = "heads", .target = &options.heads, .help = "A", .minimum = 1, .maximum = 1000},
                       threads_field(options.threads)}}},
          .run = [&options] {
            run(options);
            return 0;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options{.threads = threads()};
  return run_program({.name = "attention_bench", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
