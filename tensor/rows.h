#pragma once

#include <carousel/tensor/tensor.h>

namespace carousel {

/// The order in which the rows of a tensor [.., D] lie in memory. Whatever works row by row (a linear layer, a loss)
/// can take the rows in that order, so that a time-major view [B, T, D] is neither copied nor turned around, and gives
/// its result the same order.
class RowOrder {
 public:
  explicit RowOrder(const Tensor& x);  ///< of all axes but the last; throws ShapeError for rank 0

  /// x [.., D] as a matrix [rows, D]: a view when x has the order's layout, else a copy. Also for tensors of other last
  /// sizes, but the same leading ones.
  Tensor rows(const Tensor& x) const;
  /// The leading axes alone, such as one target or loss a row: [..] as [rows].
  Tensor column(const Tensor& x) const;
  /// The reverse of `rows`: [rows, E] as a view [.., E].
  Tensor restore(const Tensor& rows) const;
  /// The reverse of `column`.
  Tensor restore_column(const Tensor& column) const;

 private:
  Dims permutation_;  // of the leading axes, the largest stride first
  Shape leading_;     // their sizes, permuted
};

}  // namespace carousel
