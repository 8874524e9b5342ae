// Training speed on fixed workloads, to be set beside the same workloads in other frameworks.
//   train_bench WORKLOAD [--seconds 10] [--threads N] [--recompute] | --list
// Prints one JSON line; tokens_per_s is B*T over the median step.

#include <carousel/tensor/runtime.h>
#include <carousel/tensor/storage.h>
#include <carousel/tensor/version.h>

#include <fmt/core.h>

#include "common/options.h"
#include "common/patience.h"
#include "measure.h"
#include "trainer.h"
#include "workloads.h"

namespace {

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::examples;

void run(const Workload& workload, double seconds) {
  Trainer trainer(workload);
  const double first = trainer.step();
  for (int i = 0; i < 2; ++i) trainer.step();
  const uint64_t fresh = storage_stats().fresh;
  double last = first;
  const std::vector<double> times = call_times(seconds, [&trainer, &last] { last = trainer.step(); });
  const double step = median(times);
  print_line({{"workload", workload.name},
              {"impl", fmt::format("carousel-{}", version())},
              {"tokens_per_s", rounded(static_cast<double>(workload.steps * workload.batch) / step, 1)},
              {"ms_per_step", rounded(step * 1e3, 3)},
              {"params", trainer.parameter_count()},
              {"recompute", workload.recompute},
              {"loss_first", rounded(first, 5)},
              {"loss_last", rounded(last, 5)},
              {"peak_rss_mib", rounded(peak_rss_mib(), 1)},
              {"fresh_blocks_per_step",
               static_cast<double>(storage_stats().fresh - fresh) / static_cast<double>(times.size())}});
}

struct BenchOptions {
  std::string workload = {};
  double seconds = 10;
  int64_t threads;
  bool recompute = false;
};

std::string list_of_workloads() {
  std::string text = "Workloads (--list prints this list alone):\n";
  for (const Workload& workload : workloads()) text += "  " + to_string(workload) + "\n";
  return text;
}

Command bench_command(BenchOptions& options) {
  return {.help = "Training speed on fixed workloads; prints one JSON line",
          .footer = list_of_workloads(),
          .positionals = {{.name = "workload", .target = &options.workload, .help = "one of those below"}},
          .groups = {{"Measurement",
                      {{.name = "seconds", .target = &options.seconds, .help = "time", .minimum = 0, .maximum = 3600},
                       threads_field(options.threads),
                       {.name = "recompute",
                        .target = &options.recompute,
                        .help = "keep of each layer its input alone and make the rest again in backward"}}}},
          .run = [&options] {
            use_threads(options.threads);
            const FlushDenormals faster;  // as char_lm train
            Workload workload = find_workload(options.workload);
            workload.recompute = options.recompute;
            run(workload, options.seconds);
            return 0;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Workload& workload : workloads()) fmt::print("{}\n", to_string(workload));
    return 0;
  }
  BenchOptions options{.threads = threads()};
  return run_program({.name = "train_bench", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
