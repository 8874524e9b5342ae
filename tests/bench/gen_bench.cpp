// Speed of generation, one row, after contexts of several lengths: what a token costs a model that has read so many.
//   gen_bench [--workload NAME] [--longest 16384] [--tokens 100] [--threads N]
// The model of a workload (all kinds, when none is named) reads the context at once; then each token is drawn from the
// logits and read in turn, without gradients. Prints one JSON line a context, of the median token, and one with the
// power with which the cost grows with the context. A model with positions is made with room for all of them, so that
// it is the growing cache that is timed, and not a window that slides.

#include <carousel/nn/generate.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/runtime.h>

#include "common/options.h"
#include "measure.h"
#include "workloads.h"

namespace {

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::examples;

const std::vector<int64_t> contexts = {64, 1024, 16384};
constexpr int64_t warm_up = 3;  // tokens before the clock counts

struct BenchOptions {
  std::string workload = {};
  int64_t longest = contexts.back();
  int64_t tokens = 100;
  int64_t threads;
};

double milliseconds_per_token(const CharacterModel& model, int64_t context, int64_t tokens, Rng& rng) {
  ModelResult result =
      model.forward(rng.integers({1, context}, 0, model.config().vocabulary_size), model.initial_state(1));
  std::vector<double> times;
  for (int64_t i = 0; i < warm_up + tokens; ++i) {
    const auto start = Clock::now();
    const int64_t token = sample(result.logits.value().select(1, -1).select(0, 0), {}, rng);
    result = model.forward(Tensor::from(std::vector{token}, {1, 1}), result.state);
    if (i >= warm_up) times.push_back(seconds_since(start));
  }
  return median(times) * 1e3;
}

void measure(const Workload& workload, const BenchOptions& options) {
  const NoGrad no_grad;
  Rng rng(1);
  const CharacterModel model = make_model(workload, options.longest + warm_up + options.tokens, rng);
  std::vector<double> lengths, times;
  for (const int64_t context : contexts) {
    if (context > options.longest) break;
    const double milliseconds = milliseconds_per_token(model, context, options.tokens, rng);
    print_line({{"workload", workload.name},
                {"context", context},
                {"tokens_per_s", rounded(1e3 / milliseconds, 1)},
                {"ms_per_token", rounded(milliseconds, 4)}});
    lengths.push_back(static_cast<double>(context));
    times.push_back(milliseconds);
  }
  if (times.size() < 2) return;
  print_line({{"workload", workload.name}, {"slope", rounded(log_log_slope(lengths, times), 3)}});
}

Command bench_command(BenchOptions& options) {
  return {.help = "Speed of generation after contexts of 64 to 16,384 tokens; prints JSON lines",
          .groups = {{"Measurement",
                      {{.name = "workload", .target = &options.workload, .help = "its model only (train_bench --list)"},
                       {.name = "longest",
                        .target = &options.longest,
                        .help = "context, of 64, 1024 and 16384",
                        .minimum = 64,
                        .maximum = 16384},
                       {.name = "tokens", .target = &options.tokens, .help = "timed", .minimum = 1, .maximum = 1e6},
                       threads_field(options.threads)}}},
          .run = [&options] {
            set_threads(static_cast<int>(options.threads));
            std::vector<std::string> names = {"rnn", "lstm", "gru", "ssm", "gpt"};
            if (!options.workload.empty()) names = {options.workload};
            for (const std::string& name : names) measure(find_workload(name), options);
            return 0;
          }};
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options{.threads = threads()};
  return run_program({.name = "gen_bench", .help = "", .commands = {bench_command(options)}}, argc, argv);
}
