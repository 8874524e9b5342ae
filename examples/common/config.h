#pragma once

#include <carousel/nn/fields.h>

#include <string>
#include <string_view>
#include <vector>

namespace carousel::examples {

/// A configuration file: one JSON object, whose keys are options as the command line spells them, without the dashes in
/// front: {"hidden_size": 256, "lr": 2e-3, "layer-norm": true}. Numbers, texts and true or false are what they are in
/// JSON; nothing is nested.
class Config {
 public:
  enum class Type { number, text, boolean, other };
  struct Entry {
    std::string key;
    Type type;
    std::string text;  ///< the value as the command line spells it
    std::string json;  ///< the value as it stands in the file
  };

  Config() = default;  ///< holds nothing
  /// `name` stands for the file in errors. Throws UsageError for what is not one JSON object, and for a key that stands
  /// twice.
  Config(std::string name, std::string_view json);

  const std::vector<Entry>& entries() const { return entries_; }
  /// How errors name an entry: "run.json: hidden_size".
  std::string label(const Entry& entry) const { return name_ + ": " + entry.key; }

 private:
  std::string name_;
  std::vector<Entry> entries_;
};

/// Throws IoError when the file is missing, a folder, longer than a megabyte or cannot be read, and as Config does.
Config read_config(const std::string& path);

/// Sets a field from an entry. Throws UsageError naming file, key and value.
void set_from_config(const Config& config, const Config::Entry& entry, const Field& field);

/// The fields as a configuration file, an option a line; those that hold no value yet are left out.
std::string to_config(const Fields& fields);

}  // namespace carousel::examples
