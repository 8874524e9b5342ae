#include <carousel/optim/checkpoint.h>

namespace carousel {
namespace {

constexpr std::string_view counters_name = "training/counters";  // int64 [4], in the order of the enum
enum Counter { updates, position, rng_seed, rng_counter, counter_count };

const std::string optimizer_prefix = "optimizer/";
const std::string values_prefix = "carried/value/";
const std::string counts_prefix = "carried/count/";

Tensor counters_of(const TrainingState& training) {
  std::vector<int64_t> counters(counter_count);
  counters[updates] = training.step;
  counters[position] = training.position;
  counters[rng_seed] = static_cast<int64_t>(training.rng.seed());
  counters[rng_counter] = static_cast<int64_t>(training.rng.counter());
  return Tensor::from(counters, {counter_count});
}

void save_state(const State& state, Archive& archive) {
  for (const auto& [name, value] : state.values()) archive.tensors[values_prefix + name] = value.value().clone();
  for (const auto& [name, value] : state.counts()) archive.tensors[counts_prefix + name] = value.clone();
}

// In the order of names, not of the layer that made it: a State is a set.
State load_state(const Archive& archive) {
  State state;
  for (const auto& [name, tensor] : archive.tensors) {
    if (name.compare(0, values_prefix.size(), values_prefix) == 0) {
      state.set(name.substr(values_prefix.size()), tensor);
    } else if (name.compare(0, counts_prefix.size(), counts_prefix) == 0) {
      state.set_count(name.substr(counts_prefix.size()), tensor);
    }
  }
  return state;
}

std::vector<int64_t> checked_counters(const Archive& archive) {
  const Tensor& tensor = archive.tensor(std::string(counters_name));
  check<FormatError>(tensor.dtype() == DType::int64 && tensor.shape() == Shape{counter_count}, "resume",
                     "{}: {} must be int64 [{}]: got {} {}", archive.source, counters_name, int{counter_count},
                     to_string(tensor.dtype()), to_string(tensor.shape()));
  std::vector<int64_t> counters = tensor.to_vector<int64_t>();
  constexpr int64_t most = int64_t{1} << 62;  // from there nobody counts on to the end of 64 bits
  for (const Counter counter : {updates, position}) {
    check<FormatError>(counters[counter] >= 0 && counters[counter] <= most, "resume",
                       "{}: counts must be in [0, {}]: got {}", archive.source, most, counters[counter]);
  }
  return counters;
}

}  // namespace

Archive make_checkpoint(const CharacterModel& model, const std::string& vocabulary, const Optimizer& optimizer,
                        const TrainingState& training) {
  Archive archive;
  save_model(model, vocabulary, archive);
  save_tensors(optimizer.state(), optimizer_prefix, archive);
  archive.tensors[std::string(counters_name)] = counters_of(training);
  archive.texts["training/options"] = training.options;
  archive.texts["training/progress"] = training.progress;
  save_state(training.carried, archive);
  return archive;
}

void save_checkpoint(const std::string& path, const CharacterModel& model, const std::string& vocabulary,
                     const Optimizer& optimizer, const TrainingState& training) {
  save_archive(make_checkpoint(model, vocabulary, optimizer, training), path);
}

TrainingState training_state(const Archive& archive) {
  const std::vector<int64_t> counters = checked_counters(archive);
  return {
      .step = counters[updates],
      .position = counters[position],
      .rng = Rng(static_cast<uint64_t>(counters[rng_seed]), static_cast<uint64_t>(counters[rng_counter])),
      .carried = load_state(archive),
      .options = archive.text("training/options"),
      .progress = archive.text("training/progress"),
  };
}

void check_carried(const Archive& archive, const State& like) {
  NamedTensors values;
  for (const auto& [name, value] : like.values()) values.emplace_back(name, value.value());
  check_tensors(archive, values_prefix, values);
  check_tensors(archive, counts_prefix, {like.counts().begin(), like.counts().end()});
}

TrainingState resume(const Archive& archive, CharacterModel& model, Optimizer& optimizer) {
  TrainingState training = training_state(archive);
  check_tensors(archive, optimizer_prefix, optimizer.state());
  load_weights(archive, model);  // checks before it copies
  load_tensors(archive, optimizer_prefix, optimizer.state());
  return training;
}

}  // namespace carousel
