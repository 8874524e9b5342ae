// How time and memory of a training step grow with the steps T, the width H and the rows B, for every kind of layer.
//   growth [--model KIND] [--steps 128] [--hidden 64] [--batch 16] [--seconds 0.2] [--threads N]
// Prints one JSON line a kind and axis: the sizes, the median step and the most that tensors held at once, and the
// powers of the size with which they grow (least squares in logarithms). The other two sizes stay as given; one layer.

#include <carousel/tensor/runtime.h>

#include "common/options.h"
#include "measure.h"
#include "step_cost.h"

namespace {

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::examples;

/// One of the sizes of a workload, and the values that it takes in turn.
struct Axis {
  std::string name;
  int64_t Workload::*size;
  std::vector<int64_t> values;
};

const std::vector<Axis> axes = {{"T", &Workload::steps, {64, 128, 256, 512, 1024, 2048, 4096}},
                                {"H", &Workload::hidden, {32, 64, 128, 256, 512, 1024}},
                                {"B", &Workload::batch, {1, 4, 16, 64, 256}}};

struct BenchOptions {
  std::string model = {};
  Workload standing = {"growth", "", 65, 128, 16, 64, 1};  ///< the sizes that do not vary, of any model
  double seconds = 0.2;
  int64_t threads;
};

void measure(const std::string& model, const Axis& axis, const BenchOptions& options) {
  Workload workload = options.standing;
  workload.model = model;
  std::vector<double> sizes, times, memory;
  for (const int64_t value : axis.values) {
    workload.*axis.size = value;
    const StepCost cost = step_cost(workload, options.seconds);
    sizes.push_back(static_cast<double>(value));
    times.push_back(rounded(cost.seconds * 1e3, 3));
    memory.push_back(rounded(mib(cost.peak_bytes), 3));
  }
  print_line({{"model", model},
              {"axis", axis.name},
              {"sizes", axis.values},
              {"ms_per_step", times},
              {"peak_mib", memory},
              {"time_slope", rounded(log_log_slope(sizes, times), 3)},
              {"memory_slope", rounded(log_log_slope(sizes, memory), 3)}});
}

Field size_field(const std::string& name, int64_t& target) {
  return {.name = name, .target = &target, .help = "where it does not vary", .minimum = 1, .maximum = 1 << 20};
}

Command bench_command(BenchOptions& options) {
  return {
      .help = "How a training step's time and memory grow with T, H and B; prints JSON lines",
      .groups =
          {{"Measurement",
            {{.name = "model", .target = &options.model, .help = "of this kind only", .choices = layer_kind_names()},
             size_field("steps", options.standing.steps),
             size_field("hidden", options.standing.hidden),
             size_field("batch", options.standing.batch),
             {.name = "seconds", .target = &options.seconds, .help = "a size", .minimum = 0, .maximum = 3600},
             threads_field(options.threads)}}},
      .run = [&options] {
        set_threads(static_cast<int>(options.threads));
        std::vector<std::string> models = layer_kind_names();
        if (!options.model.empty()) models = {options.model};
        for (const std::string& model : models) {
          for (const Axis& axis : axes) measure(model, axis, options);
        }
        return 0;
      }};
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options{.threads = threads()};
  return run_program({.name = "growth", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
