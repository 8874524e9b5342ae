#pragma once

#include <carousel/tensor/tensor.h>

#include <map>
#include <string>

namespace carousel::test {

/// The tensors of tests/golden/NAME, float64, by the names that make_golden.py gave them.
std::map<std::string, Tensor> read_golden(const std::string& name);

}  // namespace carousel::test
