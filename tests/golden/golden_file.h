#pragma once

#include <carousel/nn/module.h>

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

namespace carousel::test {

using Golden = std::map<std::string, Tensor>;

/// The named tensors (float64) of a file in this folder.
Golden read_golden(const std::string& name);

/// The bar of the comparison with PyTorch: both programs round differently, and nothing else.
double tolerance(DType dtype);

void expect_near(const Tensor& ours, const Tensor& golden, const std::string& name);

/// Sets every parameter to the golden tensor `golden_name` calls it; then compares gradients by the same names, with
/// "grad." in front.
using Naming = std::function<std::string(const std::string&)>;
void set_parameters(const Module& module, const Golden& golden, const Naming& golden_name);
void expect_gradients(const Module& module, const Golden& golden, const Naming& golden_name);

/// A leaf with the golden number, in `dtype`.
Variable leaf(const Tensor& golden, DType dtype);

}  // namespace carousel::test
