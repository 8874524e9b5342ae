#pragma once

#include <carousel/autograd/variable.h>

namespace carousel {

/// Rows of a table that are still to be looked up: what an embedding hands to the layer above it. A layer that begins
/// with a product may multiply the table instead of what is looked up in it, forward and backward,
///   rows(table, tokens) W^T = rows(table W^T, tokens),
/// which is the same but for rounding, and less work where the tokens outnumber the symbols.
struct Lookup {
  Variable table;  ///< [V, D]
  Tensor tokens;   ///< int64 [B, T], in [0, V) behind the end of a row too

  /// Looked up: [B, T, D]. Throws as take_rows.
  Variable rows() const;
  /// Whether the table has fewer rows than there are tokens: V < B T.
  bool is_shorter() const { return table.size(0) < tokens.numel(); }
  /// The table with zeros, and no gradient, in the rows that no token reads before the end of its row (`lengths` [B] or
  /// undefined). What a weight is multiplied with, since its gradient would gather 0 times what stands there. Throws
  /// IndexError for a token outside [0, V).
  Variable zero_unread(const Tensor& lengths) const;
};

}  // namespace carousel
