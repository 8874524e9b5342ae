#include <carousel/nn/archive.h>

#include <set>

namespace carousel {
namespace {

template <class T>
const T& find(const Archive& archive, const std::map<std::string, T>& entries, std::string_view kind,
              const std::string& name) {
  const auto entry = entries.find(name);
  check<FormatError>(entry != entries.end(), "load", "{} has no {} of this name: got '{}'", archive.source, kind, name);
  return entry->second;
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.dtype()), to_string(tensor.shape()));
}

// The names of `archive` under `prefix` that no target asks for.
std::string unexpected_names(const Archive& archive, const std::string& prefix, const NamedTensors& targets) {
  std::set<std::string> wanted;
  for (const auto& [name, target] : targets) wanted.insert(prefix + name);
  std::string names;
  for (auto entry = archive.tensors.lower_bound(prefix); entry != archive.tensors.end(); ++entry) {
    if (entry->first.compare(0, prefix.size(), prefix) != 0) break;
    if (wanted.count(entry->first) == 0) names += fmt::format(" {}", entry->first.substr(prefix.size()));
  }
  return names;
}

}  // namespace

const Tensor& Archive::tensor(const std::string& name) const { return find(*this, tensors, "tensor", name); }
const std::string& Archive::text(const std::string& name) const { return find(*this, texts, "text", name); }

void load_fields(const Archive& archive, const std::string& name, std::string_view owner, const Fields& fields) {
  const std::string& json = archive.text(name);
  try {
    fields_from_json(owner, json, fields);
  } catch (const Error& error) {
    archive.refuse(error);
  }
}

void Archive::refuse(const Error& error) const {
  const std::string_view text = error.what();
  if (text.find(source) != std::string_view::npos) throw FormatError(std::string(text));
  throw FormatError(fmt::format("[load] {}: {}", source, text));
}

void save_tensors(const NamedTensors& tensors, const std::string& prefix, Archive& archive) {
  for (const auto& [name, tensor] : tensors) archive.tensors[prefix + name] = tensor.clone();
}

void check_tensors(const Archive& archive, const std::string& prefix, const NamedTensors& targets) {
  std::string missing;
  std::string mismatched;
  for (const auto& [name, target] : targets) {
    const auto found = archive.tensors.find(prefix + name);
    if (found == archive.tensors.end()) {
      missing += fmt::format(" {}", name);
    } else if (found->second.shape() != target.shape() || found->second.dtype() != target.dtype()) {
      mismatched += fmt::format(" {} (file {}, here {})", name, describe(found->second), describe(target));
    }
  }
  const std::string unexpected = unexpected_names(archive, prefix, targets);
  const auto none = [](const std::string& names) { return names.empty() ? std::string(" none") : names; };
  check<FormatError>(missing.empty() && unexpected.empty() && mismatched.empty(), "load",
                     "tensors of {} must be the target's: missing{}; unexpected{}; mismatched{}", archive.source,
                     none(missing), none(unexpected), none(mismatched));
}

void load_tensors(const Archive& archive, const std::string& prefix, const NamedTensors& targets) {
  check_tensors(archive, prefix, targets);
  for (const auto& [name, target] : targets) {
    Tensor memory = target;  // a handle on the same numbers
    memory.copy_(archive.tensor(prefix + name));
  }
}

NamedTensors named_tensors(const Module& module) {
  NamedTensors tensors;
  for (const NamedParameter& parameter : module.parameters()) {
    tensors.emplace_back(parameter.name, parameter.variable.value());
  }
  for (const NamedBuffer& buffer : module.buffers()) tensors.emplace_back(buffer.name, buffer.tensor);
  return tensors;
}

void save_module(const Module& module, const std::string& prefix, Archive& archive) {
  save_tensors(named_tensors(module), prefix, archive);
}

void load_module(const Archive& archive, const std::string& prefix, Module& module) {
  load_tensors(archive, prefix, named_tensors(module));
}

}  // namespace carousel
