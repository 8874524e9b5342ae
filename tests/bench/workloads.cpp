#include "workloads.h"

#include <carousel/tensor/random.h>

#include <fmt/core.h>

#include <algorithm>

namespace carousel::bench {
namespace {

LayerConfig layer_of(const Workload& workload) {
  LayerConfig config = layer_kind(workload.model).default_config();
  fields_from_json(workload.model, workload.options, config.field_list());
  return config;
}

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      {"rnn-tiny", "rnn", 65, 32, 1, 32, 1},      {"rnn", "rnn", 65, 64, 32, 256, 1},
      {"lstm-small", "lstm", 65, 50, 50, 128, 2}, {"lstm", "lstm", 65, 128, 32, 512, 2},
      {"gru", "gru", 65, 128, 32, 256, 2},        {"ssm", "ssm", 65, 256, 8, 128, 4},
      {"gpt-small", "gpt", 65, 64, 12, 128, 4},   {"gpt", "gpt", 65, 256, 8, 384, 6, R"({"heads": 6})"},
      {"gpt-long", "gpt", 65, 2048, 1, 128, 4},   {"gpt2-124m", "gpt", 50257, 64, 4, 768, 12, R"({"heads": 12})"},
  };
  return all;
}

const Workload& find_workload(const std::string& name) {
  const auto found = std::find_if(workloads().begin(), workloads().end(),
                                  [&name](const Workload& workload) { return workload.name == name; });
  check<ValueError>(found != workloads().end(), "workload",
                    "there is none of this name: got '{}' (see train_bench "
                    "--list)",
                    name);
  return *found;
}

std::string to_string(const Workload& w) {
  return fmt::format("{} {} V={} T={} B={} hidden={} layers={}", w.name, w.model, w.vocabulary, w.steps, w.batch,
                     w.hidden, w.layers);
}

CharacterModel make_model(const Workload& workload, int64_t context, Rng& rng) {
  return {{.model = workload.model,
           .vocabulary_size = workload.vocabulary,
           .embedding_size = workload.hidden,
           .hidden_size = workload.hidden,
           .layers = workload.layers,
           .context = context},
          layer_of(workload),
          rng};
}

}  // namespace carousel::bench
