#pragma once

#include <carousel/autograd/gradcheck.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

#include <string>
#include <vector>

namespace carousel::test {

/// One case of the gradient table: an operation at some inputs, compared with central differences in double.
struct Row {
  Op op;
  std::string name;  ///< letters, digits and underscores
  GradcheckFunction function;
  std::vector<Tensor> inputs;
};

std::vector<Row> elementwise_rows();
std::vector<Row> reduction_and_shape_rows();
std::vector<Row> nn_rows();

/// Uniform numbers in double; the seed differs from call to call in a fixed order.
Tensor random(const Shape& shape, double low = -2, double high = 2);

}  // namespace carousel::test
