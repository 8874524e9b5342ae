#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/options.h"

namespace carousel::examples {

/// "hidden_size" -> "hidden-size".
std::string dashed(std::string name);

/// The names of a command's options, in every spelling, and which of them were given.
class Spelling {
 public:
  /// Throws ValueError when two fields claim one name.
  explicit Spelling(const Command& command);

  /// Brings options to the spelling that CLI11 knows, `--rnn_size=5` to `--hidden-size 5`; what is no option stays as
  /// it is. Throws one UsageError for everything that is wrong with names.
  std::vector<std::string> normalize(const std::vector<std::string>& arguments);
  /// Sets what the configuration file says, for the command line to change afterwards. Call it after normalize. Throws
  /// one UsageError for all entries that are wrong.
  void apply(const Config& config);

  const std::string& given_as(const Field& field) const { return given_.at(&field); }
  Given given() const;
  /// Options of other programs that were given and ask for what happens anyway, as they were given.
  const std::vector<std::string>& without_effect() const { return without_effect_; }

 private:
  void add(const std::string& name, const Field& field);
  size_t read(const std::vector<std::string>& arguments, size_t at, std::vector<std::string>& result);
  const Field* find(const std::string& name) const;
  const Field* find_negated(const std::string& name) const;
  const Stranger* find_stranger(const std::string& name) const;
  void grant(const Stranger& stranger, const std::string& typed, const std::string& value, const std::string& shown);
  std::string nearest(const std::string& name) const;

  const Strangers& strangers_;
  std::map<std::string, const Field*> options_;
  std::map<const Field*, std::string> given_;
  std::vector<std::string> without_effect_;
};

}  // namespace carousel::examples
