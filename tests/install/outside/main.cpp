#include <carousel/autograd/matmul.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/print.h>
#include <carousel/tensor/runtime.h>

#include <iostream>

int main() {
  const carousel::Variable a = carousel::Variable::parameter(carousel::Tensor::from({1, 2, 3, 4}, {2, 2}));
  const carousel::Variable b(carousel::Tensor::from({5, 6, 7, 8}, {2, 2}));
  carousel::sum(carousel::matmul(a, b)).backward();
  std::cout << "gradient " << carousel::to_string(a.grad()) << ", " << carousel::runtime_info().blas << "\n";
}
