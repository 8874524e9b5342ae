#include <carousel/autograd/matmul.h>
#include <carousel/autograd/record.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/reduce.h>
#include <carousel/tensor/rows.h>

namespace carousel {

Variable matmul(const Variable& a, const Variable& b) {
  return record(
      Op::matmul, matmul(a.value(), b.value()), {a, b},
      [a = Saved(a.value()), b = Saved(b.value()), da = a.requires_grad(), db = b.requires_grad()](const Tensor& dy) {
        const Tensor& A = a.get();
        const Tensor& B = b.get();
        return Gradients{da ? sum_to(matmul(dy, B.transpose(-1, -2)), A.shape()) : Tensor(),   // dY B^T
                         db ? sum_to(matmul(A.transpose(-1, -2), dy), B.shape()) : Tensor()};  // A^T dY
      });
}

Variable linear(const Variable& x, const Variable& weight, const Variable& bias) {
  check<ShapeError>(x.rank() >= 1 && weight.rank() == 2 && x.shape().back() == weight.size(1), "linear",
                    "the last size of x must be the weight's second: got {} and {}", to_string(x.shape()),
                    to_string(weight.shape()));
  check<ShapeError>(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "linear",
                    "the bias must have the weight's first size: got {} and {}", to_string(bias.shape()),
                    to_string(weight.shape()));
  const RowOrder order(x.value());
  const Tensor rows = order.rows(x.value());
  const Tensor y = linear(rows, weight.value(), bias.defined() ? bias.value() : Tensor());
  const Remake remake = remake_of(x);
  return record(
      Op::linear, order.restore(y), {x, weight, bias},
      [rows = Saved(remake ? Tensor() : rows), remake, weight = Saved(weight.value()), order, dx = x.requires_grad(),
       dweight = weight.requires_grad(), dbias = bias.requires_grad()](const Tensor& dy) {
        const Tensor dy_rows = order.rows(dy);
        const auto x_rows = [&rows, &remake, &order] { return remake ? order.rows(remake()) : rows.get(); };
        return Gradients{dx ? order.restore(matmul(dy_rows, weight.get())) : Tensor(),
                         dweight ? matmul(dy_rows.transpose(0, 1), x_rows()) : Tensor(),
                         dbias ? sum(dy_rows, {0}) : Tensor()};
      });
}

}  // namespace carousel
