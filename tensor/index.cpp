#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/index.h>
#include <carousel/tensor/kernels/index.h>
#include <carousel/tensor/operands.h>
#include <carousel/tensor/rows.h>

#include <algorithm>

namespace carousel {
namespace {

/// The coordinates of element `i` of a row-major array.
Dims coordinates(int64_t i, const Shape& shape) {
  Dims at = Dims::filled(shape.rank(), 0);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return at;
}

void check_index_dtype(std::string_view operation, const Tensor& index) {
  check_defined(operation, index);
  check<ValueError>(index.dtype() == DType::int64, operation, "the index must be int64: got {}",
                    to_string(index.dtype()));
}

/// Throws unless all of `index` (contiguous) is in [0, size).
void check_positions(std::string_view operation, const Tensor& index, int64_t size) {
  const int64_t* values = index.data<int64_t>();
  const int64_t bad = kernels::find_outside(index.numel(), values, size);
  if (bad < 0) return;
  throw IndexError(fmt::format("[{}] positions must be in [0, {}): got {} at {}", operation, size, values[bad],
                               coordinates(bad, index.shape())));
}

/// The index in the order in which it lies in memory, flat, and that order for whole rows.
struct IndexedRows {
  RowOrder order;
  Tensor index;
};

IndexedRows indexed_rows(std::string_view operation, const Tensor& index, int64_t size) {
  check_index_dtype(operation, index);
  const RowOrder order(index.unsqueeze(-1));
  const Tensor flat = order.column(index).contiguous();
  if (kernels::find_outside(flat.numel(), flat.data<int64_t>(), size) >= 0) {
    check_positions(operation, index.contiguous(), size);
  }
  return {order, flat};
}

Shape joined(const Shape& a, std::span<const int64_t> b) {
  Shape result = a;
  for (int64_t size : b) result.push_back(size);
  return result;
}

/// `x` [first.., rest..] as [first.., product of rest].
Tensor flatten_after(const Tensor& x, int axes) {
  const std::span<const int64_t> all(x.shape().begin(), x.shape().end());
  const Shape first(all.subspan(0, axes));
  return x.reshape(joined(first, std::array{numel(Shape(all.subspan(axes)))}));
}

kernels::PickLayout pick_layout(const Tensor& x, int axis, const Tensor& index) {
  kernels::PickLayout layout{.rank = x.rank(), .axis = axis};
  std::copy(index.shape().begin(), index.shape().end(), layout.sizes.begin());
  std::copy(x.strides().begin(), x.strides().end(), layout.strides.begin());
  return layout;
}

/// The index, contiguous, after all checks that gather and scatter_add share.
Tensor checked_picks(std::string_view operation, const Tensor& x, int axis, const Tensor& index) {
  check_index_dtype(operation, index);
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.shape()[i] <= x.shape()[i];
  check<ShapeError>(fits, operation, "the index must have as many axes and, off axis {}, sizes at most: got {} for {}",
                    axis, index.shape(), x.shape());
  Tensor picks = index.contiguous();
  check_positions(operation, picks, x.shape()[axis]);
  return picks;
}

/// The sizes of `source` behind those of the index.
std::span<const int64_t> sizes_of_a_row(std::string_view operation, const Tensor& source, const Tensor& index) {
  check_defined(operation, source);
  check<ShapeError>(
      index.rank() <= source.rank() && std::equal(index.shape().begin(), index.shape().end(), source.shape().begin()),
      operation, "the source's first sizes must be the index's: got {} and {}", source.shape(), index.shape());
  return {source.shape().begin() + index.rank(), source.shape().end()};
}

/// out[index[i]] += source[i]; `out` is contiguous, and all sizes fit.
void add_to_rows(std::string_view operation, Tensor& out, const Tensor& index, const Tensor& source) {
  const IndexedRows target = indexed_rows(operation, index, out.shape()[0]);
  Tensor from = target.order.rows(flatten_after(source, index.rank())).contiguous();
  if (may_overlap(out, from)) from = from.clone();
  dispatch_numeric(operation, source.dtype(), [&target, &from, &out](auto zero) {
    using T = decltype(zero);
    kernels::add_rows(target.index.numel(), target.index.data<int64_t>(), from.data<T>(), from.shape()[1],
                      out.mutable_data<T>());
  });
}

}  // namespace

Tensor take_rows(const Tensor& table, const Tensor& index) {
  check_defined("take_rows", table);
  check<ShapeError>(table.rank() >= 1, "take_rows", "the table must have at least one axis: got {}", table.shape());
  const IndexedRows rows = indexed_rows("take_rows", index, table.shape()[0]);
  const Tensor source = flatten_after(table, 1).contiguous();
  Tensor out({rows.index.numel(), source.shape()[1]}, table.dtype());
  dispatch_all(table.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::take_rows(
        rows.index.numel(), rows.index.data<int64_t>(), reinterpret_cast<const std::byte*>(source.data<T>()),
        source.shape()[1] * static_cast<int64_t>(sizeof(T)), reinterpret_cast<std::byte*>(out.mutable_data<T>()));
  });
  return rows.order.restore(out).reshape(joined(index.shape(), {table.shape().begin() + 1, table.shape().end()}));
}

Tensor scatter_rows(const Tensor& source, const Tensor& index, int64_t rows) {
  check<ValueError>(rows >= 0, "scatter_rows", "the number of rows must not be negative: got {}", rows);
  Tensor out = zeros(joined({rows}, sizes_of_a_row("scatter_rows", source, index)), source.dtype());
  add_to_rows("scatter_rows", out, index, source);
  return out;
}

Tensor& add_rows_(Tensor& out, const Tensor& index, const Tensor& source) {
  check_same_dtype("add_rows_", out, source);
  const std::span<const int64_t> row = sizes_of_a_row("add_rows_", source, index);
  check<ShapeError>(out.rank() >= 1 && std::equal(row.begin(), row.end(), out.shape().begin() + 1, out.shape().end()),
                    "add_rows_", "rows must be of the source's last sizes: got {} and {}, at {}", out.shape(),
                    source.shape(), index.shape());
  if (!out.is_contiguous()) return add_(out, scatter_rows(source, index, out.size(0)));
  add_to_rows("add_rows_", out, index, source);
  return out;
}

Tensor gather(const Tensor& x, int64_t axis, const Tensor& index) {
  check_defined("gather", x);
  const int at = normalize_axis("gather", axis, x.rank());
  const Tensor picks = checked_picks("gather", x, at, index);
  Tensor out(index.shape(), x.dtype());
  if (out.numel() == 0) return out;
  dispatch_all(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::gather(pick_layout(x, at, picks), picks.data<int64_t>(), x.data<T>(), out.mutable_data<T>());
  });
  return out;
}

Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source) {
  check_same_dtype("scatter_add", x, source);
  const int at = normalize_axis("scatter_add", axis, x.rank());
  check<ShapeError>(source.shape() == index.shape(), "scatter_add",
                    "source and index must have one shape: got {} and {}", source.shape(), index.shape());
  const Tensor picks = checked_picks("scatter_add", x, at, index);
  const Tensor from = source.contiguous();
  Tensor out = x.clone();
  dispatch_numeric("scatter_add", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (from.numel() == 0) return;
    kernels::scatter_add(pick_layout(out, at, picks), picks.data<int64_t>(), from.data<T>(), out.mutable_data<T>());
  });
  return out;
}

Tensor one_hot(const Tensor& index, int64_t classes, DType dtype) {
  check_index_dtype("one_hot", index);
  check<ValueError>(classes >= 0, "one_hot", "the number of classes must not be negative: got {}", classes);
  const Tensor picks = index.contiguous();
  check_positions("one_hot", picks, classes);
  Tensor out = zeros(joined(index.shape(), std::array{classes}), dtype);
  dispatch_all(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* rows = out.mutable_data<T>();
    for (int64_t i = 0; i < picks.numel(); ++i) rows[i * classes + picks.data<int64_t>()[i]] = T(1);
  });
  return out;
}

}  // namespace carousel
