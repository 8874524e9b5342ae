#pragma once

#include <carousel/nn/module.h>

#include <map>
#include <string>
#include <vector>

namespace carousel {

/// A file of named tensors and named texts. On disk: 8 bytes magic "CAROUSEL", format version, payload length and
/// SHA-256 of the payload, then the payload (cereal, portable binary). Length and digest are verified before anything
/// is parsed.
struct Archive {
  static constexpr uint32_t format_version = 1;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> texts;

  const Tensor& tensor(const std::string& name) const;     ///< throws FormatError when missing
  const std::string& text(const std::string& name) const;  ///< throws FormatError when missing
};

/// Writes to a temporary file beside `path`, flushes it to disk, and renames it: whatever happens, `path` holds the
/// old archive or the new one, whole. Throws IoError with path and system reason.
void save_archive(const Archive& archive, const std::string& path);
/// Throws IoError when it cannot be read, FormatError naming file and fault when it is not a whole archive of a
/// version understood.
Archive load_archive(const std::string& path);

/// Copies parameters and buffers to `prefix` + name, and back. Loading checks every name, shape and dtype first and
/// throws FormatError that lists missing, unexpected and mismatched ones; then nothing was changed.
void save_module(const Module& module, const std::string& prefix, Archive& archive);
void load_module(const Archive& archive, const std::string& prefix, Module& module);

}  // namespace carousel
