#include <carousel/tensor/rows.h>

#include <algorithm>

namespace carousel {

RowOrder::RowOrder(const Tensor& x) {
  check<ShapeError>(x.rank() >= 1, "rows", "the tensor must have at least one axis: got {}", to_string(x.shape()));
  for (int i = 0; i < x.rank() - 1; ++i) permutation_.push_back(i);
  std::stable_sort(permutation_.begin(), permutation_.end(),
                   [&](int64_t a, int64_t b) { return x.strides()[int(a)] > x.strides()[int(b)]; });
  for (int64_t axis : permutation_) leading_.push_back(x.shape()[int(axis)]);
}

Tensor RowOrder::rows(const Tensor& x) const {
  Dims axes = permutation_;
  axes.push_back(x.rank() - 1);
  return x.permute(axes).reshape({carousel::numel(leading_), x.shape().back()});
}

Tensor RowOrder::column(const Tensor& x) const { return x.permute(permutation_).reshape({carousel::numel(leading_)}); }

Tensor RowOrder::restore(const Tensor& rows) const {
  Shape shape = leading_;
  shape.push_back(rows.shape().back());
  Dims back = Dims::filled(shape.rank(), shape.rank() - 1);
  for (int i = 0; i < permutation_.rank(); ++i) back[int(permutation_[i])] = i;
  return rows.reshape(shape).permute(back);
}

Tensor RowOrder::restore_column(const Tensor& column) const {
  Dims back = permutation_;
  for (int i = 0; i < permutation_.rank(); ++i) back[int(permutation_[i])] = i;
  return column.reshape(leading_).permute(back);
}

}  // namespace carousel
