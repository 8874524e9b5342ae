#pragma once

#include <carousel/tensor/tensor.h>

/// Reading and writing at positions given by an int64 tensor (ValueError for other dtypes). A position outside its axis
/// is an IndexError naming the position and the size; negative positions are outside. Results are new.
namespace carousel {

/// Rows of `table` [V, ..], of any dtype, at `index` (any shape): shape index.shape + [..]. The result lies in memory
/// in the order of `index`, so that time-major tokens give time-major rows. Throws ShapeError for a table of rank 0.
Tensor take_rows(const Tensor& table, const Tensor& index);
/// The backward of take_rows: a tensor [rows, ..] of zeros, then out[index[i]] += source[i], where `source` has the
/// shape index.shape + [..] (ShapeError otherwise) and is float32, float64 or int64 (ValueError otherwise, and when
/// rows < 0). Deterministic.
Tensor scatter_rows(const Tensor& source, const Tensor& index, int64_t rows);
/// The same in place, on what is there: out[index[i]] += source[i], `out` [rows, ..] of the source's dtype (ValueError
/// otherwise) with the source's last sizes (ShapeError). Returns out.
Tensor& add_rows_(Tensor& out, const Tensor& index, const Tensor& source);

/// out[i][j].. = x[..][index[i][j]..].. along `axis`: index's shape, x's dtype (any). `index` has x's rank and, off the
/// axis, sizes at most x's (ShapeError otherwise).
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);
/// A copy of `x` with x[..][index..].. += source along `axis`: the backward of gather. `index` as there, `source` of
/// its shape (ShapeError) and of x's dtype, float32, float64 or int64 (ValueError). Repeated positions add up;
/// deterministic.
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// Shape index.shape + [classes], of any dtype: 1 at the index, 0 elsewhere. Throws ValueError when classes < 0.
Tensor one_hot(const Tensor& index, int64_t classes, DType dtype = DType::float32);

}  // namespace carousel
