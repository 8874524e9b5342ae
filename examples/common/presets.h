#pragma once

#include <string>
#include <vector>

namespace carousel::examples {

/// Settings of `char_lm train` that go together, measured as the fastest way to a loss (docs/performance.md).
struct Preset {
  std::string name;
  std::string model;    ///< kind of sequence layer
  std::string options;  ///< what differs from the defaults of that kind: a JSON object of `all_fields`
  std::string help;
};

const std::vector<Preset>& presets();
std::vector<std::string> preset_names();
/// The preset of that name, or null.
const Preset* find_preset(const std::string& name);

std::string list_of_presets();  ///< what --help says of --preset, a line a preset

}  // namespace carousel::examples
