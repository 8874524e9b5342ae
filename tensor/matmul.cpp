#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/product.h>
#include <carousel/tensor/matmul.h>
#include <carousel/tensor/operands.h>
#include <carousel/tensor/rows.h>

#include <algorithm>

namespace carousel {
namespace {

struct Sizes {
  int64_t m, k, n;
};

Sizes check_operands(const Tensor& a, const Tensor& b) {
  check_same_dtype("matmul", a, b);
  check<ShapeError>(a.rank() >= 2 && b.rank() >= 2, "matmul", "operands must have at least two axes: got {} and {}",
                    a.shape(), b.shape());
  const Sizes sizes{a.size(-2), a.size(-1), b.size(-1)};
  check<ShapeError>(sizes.k == b.size(-2), "matmul", "inner sizes must match: got {} and {}", a.shape(), b.shape());
  for (int i = 3; i <= std::min(a.rank(), b.rank()); ++i) {
    check<ShapeError>(a.size(-i) == b.size(-i) || a.size(-i) == 1 || b.size(-i) == 1, "matmul",
                      "leading sizes must be equal or broadcast: got {} and {}", a.shape(), b.shape());
  }
  return sizes;
}

Shape leading_sizes(const Tensor& x) { return Dims(std::span(x.shape().begin(), x.shape().end() - 2)); }

/// A stack of matrices as products read them: rows at a distance of `ld`, or columns when `transposed` is set.
struct Matrices {
  Tensor x;
  bool transposed = false;
  int64_t ld = 1;

  template <class T>
  kernels::Factor<T> factor() const {
    return {x.data<T>(), ld, transposed};
  }
};

Matrices as_products_read(const Tensor& x) {
  const int64_t rows = x.size(-2), columns = x.size(-1);
  const int64_t down = rows > 1 ? x.strides()[x.rank() - 2] : std::max<int64_t>(columns, 1);
  const int64_t right = columns > 1 ? x.strides()[x.rank() - 1] : 1;
  if (right == 1 && down >= columns) return {x, false, down};
  const int64_t column_distance = columns > 1 ? right : std::max<int64_t>(rows, 1);
  if ((down == 1 || rows <= 1) && column_distance >= rows) return {x, true, column_distance};
  return {x.clone(), false, std::max<int64_t>(columns, 1)};
}

/// Whether all axes but the last merge into the rows of one row-major matrix, in the order in which they lie in memory.
bool is_one_matrix(const Tensor& x) {
  if (x.size(-1) > 1 && x.strides().back() != 1) return false;
  Dims axes;
  for (int i = 0; i < x.rank() - 1; ++i) {
    if (x.shape()[i] != 1) axes.push_back(i);
  }
  const auto stride = [&](int i) { return x.strides()[static_cast<int>(axes[i])]; };
  std::sort(axes.begin(), axes.end(),
            [&](int64_t a, int64_t b) { return x.strides()[static_cast<int>(a)] > x.strides()[static_cast<int>(b)]; });
  for (int i = 0; i + 1 < axes.rank(); ++i) {
    if (stride(i) != stride(i + 1) * x.shape()[static_cast<int>(axes[i + 1])]) return false;
  }
  return axes.empty() || stride(axes.rank() - 1) >= x.size(-1);
}

/// Where the matrix of every leading position starts, in row-major order.
template <class T>
std::vector<const T*> starts(const Tensor& x, const Shape& leading) {
  Shape shape = leading;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  const Dims strides = x.expand(shape).strides();
  const T* const base = x.data<T>();
  std::vector<const T*> result(static_cast<size_t>(numel(leading)));
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), offset = 0;
    for (int axis = leading.rank() - 1; axis >= 0; --axis) {
      offset += rest % leading[axis] * strides[axis];
      rest /= leading[axis];
    }
    result[i] = base + offset;
  }
  return result;
}

template <class T>
Tensor product_of_stacks(const Tensor& a, const Tensor& b, const Sizes& s) {
  const Shape leading = broadcast_shapes("matmul", leading_sizes(a), leading_sizes(b));
  Shape shape = leading;
  shape.push_back(s.m);
  shape.push_back(s.n);
  Tensor out(shape, a.dtype());
  if (out.numel() == 0) return out;
  const Matrices left = as_products_read(a), right = as_products_read(b);
  kernels::product_batch<T>(s.m, s.n, s.k, left.factor<T>(), starts<T>(left.x, leading), right.factor<T>(),
                            starts<T>(right.x, leading), out.mutable_data<T>());
  return out;
}

template <class T>
Tensor product(const Tensor& a, const Tensor& b, const Sizes& s) {
  // One matrix on the right: the rows of all matrices on the left can be those of one product. The result keeps their
  // order in memory, so that a time-major view stays one.
  if (a.rank() > 2 && b.rank() == 2 && a.numel() > 0 && is_one_matrix(a)) {
    const RowOrder order(a);
    const Tensor rows = order.rows(a);
    return order.restore(product_of_stacks<T>(rows, b, {rows.size(0), s.k, s.n}));
  }
  return product_of_stacks<T>(a, b, s);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check<ShapeError>(x.rank() == 2 && weight.rank() == 2, "linear", "x and weight must be matrices: got {} and {}",
                    x.shape(), weight.shape());
  const Tensor w = weight.transpose(0, 1);
  const Sizes s = check_operands(x, w);
  check<ShapeError>(!bias.defined() || bias.shape() == Shape{s.n}, "linear",
                    "the bias must have the weight's first size: got {} and {}", bias.shape(), weight.shape());
  if (bias.defined()) check_same_dtype("linear", x, bias);
  Tensor out({s.m, s.n}, x.dtype());
  if (out.numel() == 0) return out;
  const Matrices left = as_products_read(x), right = as_products_read(w);
  const Tensor row = bias.defined() ? bias.contiguous() : bias;
  dispatch_floating("linear", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::product<T>(s.m, s.n, s.k, left.factor<T>(), right.factor<T>(), row.defined() ? row.data<T>() : nullptr,
                        out.mutable_data<T>());
  });
  return out;
}

Tensor& add_matmul_(Tensor& c, const Tensor& a, const Tensor& b) {
  const Sizes s = check_operands(a, b);
  check_same_dtype("add_matmul_", c, a);
  check<ShapeError>(a.rank() == 2 && b.rank() == 2 && c.shape() == Shape{s.m, s.n}, "add_matmul_",
                    "the product of two matrices must have the shape of the sum: got {} and {} for {}", a.shape(),
                    b.shape(), c.shape());
  check<ValueError>(c.is_contiguous() && !may_overlap(c, a) && !may_overlap(c, b), "add_matmul_",
                    "the sum must be row-major and in memory of its own: got strides {}", c.strides());
  const Matrices left = as_products_read(a), right = as_products_read(b);
  dispatch_floating("add_matmul_", c.dtype(), [&s, &left, &right, &c](auto zero) {
    using T = decltype(zero);
    kernels::product<T>(s.m, s.n, s.k, left.factor<T>(), right.factor<T>(), nullptr, c.mutable_data<T>(),
                        kernels::Into::accumulate);
  });
  return c;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  const Sizes sizes = check_operands(a, b);
  return dispatch_floating("matmul", a.dtype(), [&](auto zero) { return product<decltype(zero)>(a, b, sizes); });
}

}  // namespace carousel
