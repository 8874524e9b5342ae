#pragma once

#include <carousel/nn/character_model.h>

#include <string>
#include <vector>

namespace carousel::bench {

/// A model and the windows that it is trained on.
struct Workload {
  std::string name, model;
  int64_t vocabulary, steps, batch, hidden, layers;
  std::string options = "{}";  ///< of the layer, as JSON
  bool recompute = false;      ///< SequenceOptions::recompute
};

/// Those on which we are set beside other frameworks.
const std::vector<Workload>& workloads();
/// Throws ValueError when there is none of that name.
const Workload& find_workload(const std::string& name);
/// "rnn rnn V=65 T=64 B=32 hidden=256 layers=1": name, kind and sizes.
std::string to_string(const Workload& workload);

/// The model, which can read `context` tokens where its kind bounds them.
CharacterModel make_model(const Workload& workload, int64_t context, Rng& rng);

}  // namespace carousel::bench
