#include "golden_file.h"

#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/reduce.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace carousel::test {

Golden read_golden(const std::string& name) {
  Golden tensors;
  std::ifstream file(std::string(GOLDEN_DIR) + "/" + name);
  const nlohmann::json table = nlohmann::json::parse(file);
  for (const auto& [key, entry] : table.items()) {
    const auto shape = entry["shape"].get<std::vector<int64_t>>();
    tensors[key] = Tensor::from(entry["values"].get<std::vector<double>>(), Shape(std::span(shape)));
  }
  return tensors;
}

double tolerance(DType dtype) { return dtype == DType::float32 ? 1e-5 : 1e-9; }

void expect_near(const Tensor& ours, const Tensor& golden, const std::string& name) {
  ASSERT_EQ(ours.shape(), golden.shape()) << name;
  const double worst = ours.numel() ? max(abs(ours.to(DType::float64) - golden)).item() : 0;
  EXPECT_LE(worst, tolerance(ours.dtype())) << name;
}

void set_parameters(const Module& module, const Golden& golden, const Naming& golden_name) {
  for (const NamedParameter& parameter : module.parameters()) {
    Tensor value = parameter.variable.value();
    value.copy_(golden.at(golden_name(parameter.name)));
  }
}

void expect_gradients(const Module& module, const Golden& golden, const Naming& golden_name) {
  for (const NamedParameter& parameter : module.parameters()) {
    expect_near(parameter.variable.grad(), golden.at("grad." + golden_name(parameter.name)), parameter.name);
  }
}

Variable leaf(const Tensor& golden, DType dtype) { return Variable::parameter(golden.to(dtype).clone()); }

}  // namespace carousel::test
