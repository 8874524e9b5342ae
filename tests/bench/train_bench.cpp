// Training speed on fixed workloads, to be set beside the same workloads in other frameworks.
//   train_bench WORKLOAD [--seconds 10] [--threads N] | --list
// One step is what a user runs: forward, mean cross-entropy over B*T targets, backward, clipping to norm 1, AdamW. The
// tokens are random, 256 batches in turn, so that nothing is learnt by heart: the arithmetic is timed. Prints one JSON
// line; tokens_per_s is B*T over the median step.

#include <carousel/nn/character_model.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/clip.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>
#include <carousel/tensor/version.h>

#include <fmt/core.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "common/options.h"

namespace {

using namespace carousel;
using namespace carousel::examples;
using Clock = std::chrono::steady_clock;

struct Workload {
  std::string name, model;
  int64_t vocabulary, steps, batch, hidden, layers;
  std::string options = "{}";  // of the layer, as JSON
};

const std::vector<Workload> workloads = {
    {"rnn-tiny", "rnn", 65, 32, 1, 32, 1},      {"rnn", "rnn", 65, 64, 32, 256, 1},
    {"lstm-small", "lstm", 65, 50, 50, 128, 2}, {"lstm", "lstm", 65, 128, 32, 512, 2},
    {"gru", "gru", 65, 128, 32, 256, 2},        {"ssm", "ssm", 65, 256, 8, 128, 4},
    {"gpt-small", "gpt", 65, 64, 12, 128, 4},   {"gpt", "gpt", 65, 256, 8, 384, 6, R"({"heads": 6})"},
    {"gpt-long", "gpt", 65, 2048, 1, 128, 4},
};

const Workload& find_workload(const std::string& name) {
  const auto found =
      std::find_if(workloads.begin(), workloads.end(), [&](const Workload& w) { return w.name == name; });
  check<ValueError>(found != workloads.end(), "train_bench", "no such workload: got '{}' (see --list)", name);
  return *found;
}

LayerConfig layer_of(const Workload& workload) {
  LayerConfig config = layer_kind(workload.model).default_config();
  fields_from_json(workload.model, workload.options, config.field_list());
  return config;
}

class Trainer {
 public:
  explicit Trainer(const Workload& workload)
      : workload_(workload),
        rng_(1),
        model_({.model = workload.model,
                .vocabulary_size = workload.vocabulary,
                .embedding_size = workload.hidden,
                .hidden_size = workload.hidden,
                .layers = workload.layers,
                .context = workload.steps},
               layer_of(workload), rng_),
        optimizer_(model_.parameters(), {.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1}) {
    for (int i = 0; i < 256; ++i) {
      batches_.push_back(rng_.integers({workload.steps + 1, workload.batch}, 0, workload.vocabulary));
    }
  }

  double step() {
    const Tensor tokens = batches_[size_t(turn_++) % batches_.size()].transpose(0, 1);  // [B, T + 1], time-major
    const Tensor inputs = tokens.slice(1, {0, -1}), targets = tokens.slice(1, {1});
    const LossResult result = model_.loss(inputs, targets, model_.initial_state(workload_.batch));
    optimizer_.zero_grad();
    result.loss.backward();
    clip_grad_norm(model_.parameters(), 1.0);
    optimizer_.step(1e-3);
    return result.loss.value().item();
  }

  int64_t parameter_count() const { return model_.parameter_count(); }

 private:
  Workload workload_;
  Rng rng_;
  CharacterModel model_;
  AdamW optimizer_;
  std::vector<Tensor> batches_;
  int64_t turn_ = 0;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double peak_rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

void run(const Workload& workload, double seconds) {
  Trainer trainer(workload);
  const double first = trainer.step();
  for (int i = 0; i < 2; ++i) trainer.step();
  std::vector<double> times;
  double last = first;
  for (const auto start = Clock::now(); times.size() < 3 || seconds_since(start) < seconds;) {
    const auto before = Clock::now();
    last = trainer.step();
    times.push_back(seconds_since(before));
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  nlohmann::ordered_json line;
  line["workload"] = workload.name;
  line["impl"] = fmt::format("carousel-{}", version());
  line["tokens_per_s"] = rounded(static_cast<double>(workload.steps * workload.batch) / median, 1);
  line["ms_per_step"] = rounded(median * 1e3, 3);
  line["params"] = trainer.parameter_count();
  line["loss_first"] = rounded(first, 5);
  line["loss_last"] = rounded(last, 5);
  line["peak_rss_mib"] = rounded(peak_rss_mib(), 1);
  fmt::print("{}\n", line.dump());
}

struct BenchOptions {
  std::string workload = {};
  double seconds = 10;
  int64_t threads;
};

void list_workloads() {
  for (const Workload& w : workloads) {
    fmt::print("{} {} V={} T={} B={} hidden={} layers={}\n", w.name, w.model, w.vocabulary, w.steps, w.batch, w.hidden,
               w.layers);
  }
}

Command bench_command(BenchOptions& options) {
  return {.help = "Training speed on fixed workloads; prints one JSON line",
          .positionals = {{.name = "workload", .target = &options.workload, .help = "one of --list"}},
          .groups = {{"Measurement",
                      {{.name = "seconds", .target = &options.seconds, .help = "time", .minimum = 0, .maximum = 3600},
                       {.name = "threads",
                        .target = &options.threads,
                        .help = "of kernels and BLAS",
                        .minimum = 1,
                        .maximum = 1024}}}},
          .run = [&options] {
            set_threads(static_cast<int>(options.threads));
            run(find_workload(options.workload), options.seconds);
            return 0;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    list_workloads();
    return 0;
  }
  BenchOptions options{.threads = threads()};
  return run_program({.name = "train_bench", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
