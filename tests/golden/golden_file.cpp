#include "golden_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace carousel::test {

std::map<std::string, Tensor> read_golden(const std::string& name) {
  std::map<std::string, Tensor> tensors;
  std::ifstream file(std::string(GOLDEN_DIR) + "/" + name);
  const nlohmann::json table = nlohmann::json::parse(file);
  for (const auto& [key, entry] : table.items()) {
    const auto shape = entry["shape"].get<std::vector<int64_t>>();
    tensors[key] = Tensor::from(entry["values"].get<std::vector<double>>(), Shape(std::span(shape)));
  }
  return tensors;
}

}  // namespace carousel::test
