#pragma once

#include <carousel/tensor/tensor.h>

/// Reading and writing at positions given by an int64 tensor. A position outside its axis is an IndexError naming the
/// position and the size; negative positions are outside.
namespace carousel {

/// Rows of `table` [V, ..] at `index` (any shape): shape index.shape + [..]. The result lies in memory in the order
/// of `index`, so that time-major tokens give time-major rows.
Tensor take_rows(const Tensor& table, const Tensor& index);
/// The backward of take_rows: a [rows, ..] tensor with out[index[i]] += source[i]; deterministic.
Tensor scatter_rows(const Tensor& source, const Tensor& index, int64_t rows);

/// out[i][j].. = x[..][index[i][j]..].. along `axis`; `index` has x's rank and, off the axis, sizes at most x's.
Tensor gather(const Tensor& x, int64_t axis, const Tensor& index);
/// A copy of `x` with x[..][index..].. += source along `axis`; repeated positions add up; deterministic.
Tensor scatter_add(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& source);
/// shape index.shape + [classes], 1 at the index.
Tensor one_hot(const Tensor& index, int64_t classes, DType dtype = DType::float32);

}  // namespace carousel
