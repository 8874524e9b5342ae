#pragma once

#include <carousel/nn/fields.h>
#include <carousel/nn/module.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace carousel {

/// A file of named tensors and named texts. On disk: 8 bytes magic "CAROUSEL", format version (4 bytes), payload
/// length (8), SHA-256 of the payload (32), then the payload (cereal, portable binary); numbers little-endian. Length
/// and digest are verified before anything is parsed.
struct Archive {
  static constexpr uint32_t format_version = 1;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> texts;
  std::string source = "archive";  ///< the file it came from, for error texts

  const Tensor& tensor(const std::string& name) const;     ///< throws FormatError when missing
  const std::string& text(const std::string& name) const;  ///< throws FormatError when missing

  /// Throws the error as a FormatError that names the file.
  [[noreturn]] void refuse(const Error& error) const;
};

/// Writes to `path`.tmp, flushes it to disk, and renames it: whatever happens, `path` holds the old archive or the
/// new one, whole; a temporary file that a killed process left is replaced. One process at a time may save to a path.
/// Throws IoError with path and system reason, also when `path` is there and is not a regular file.
void save_archive(const Archive& archive, const std::string& path);
/// Reads the file twice, for its digest and for its contents, and so needs its memory once, and at most 100 MB more.
/// Throws IoError when it cannot be read, FormatError naming file and fault when it is not a whole archive of a
/// version understood.
Archive load_archive(const std::string& path);

/// Sets fields from the text `name` of an archive, as fields_from_json does. Throws FormatError naming the file.
void load_fields(const Archive& archive, const std::string& name, std::string_view owner, const Fields& fields);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Copies tensors to `prefix` + name, and back into the memory of `targets`. `check_tensors` throws FormatError that
/// lists the missing, unexpected and mismatched names, with both shapes; `load_tensors` calls it before it changes
/// anything.
void save_tensors(const NamedTensors& tensors, const std::string& prefix, Archive& archive);
void check_tensors(const Archive& archive, const std::string& prefix, const NamedTensors& targets);
void load_tensors(const Archive& archive, const std::string& prefix, const NamedTensors& targets);

/// Parameters and buffers, which share the module's memory.
NamedTensors named_tensors(const Module& module);

/// The same for a module's parameters and buffers.
void save_module(const Module& module, const std::string& prefix, Archive& archive);
void load_module(const Archive& archive, const std::string& prefix, Module& module);

}  // namespace carousel
