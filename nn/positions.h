#pragma once

#include <carousel/nn/module.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/random.h>

namespace carousel {

/// Learned positions (GPT-2, Radford and others 2019): y_t = x_t + weight[p], where p counts the tokens of the row
/// since its text began. Parameter weight [context, D], N(0, 0.02^2). The constructor throws ValueError for sizes that
/// are not positive.
class LearnedPositions : public Module {
 public:
  LearnedPositions(int64_t context, int64_t size, Rng& rng, DType dtype = DType::float32);

  struct Result {
    Variable output;  ///< [B, T, D]
    Tensor next;      ///< int64 [B]: tokens that each row has read by now
  };
  /// x [B, T, D]; read int64 [B]: tokens that each row has read before. A reset begins a row's count anew; behind the
  /// end of a row it stands still. Throws ValueError when a row would read more tokens than `context`, ShapeError or
  /// ValueError for what does not fit.
  Result forward(const Variable& x, const Tensor& read, const SequenceOptions& options = {}) const;

  int64_t context() const { return weight_.size(0); }

 private:
  Variable weight_;
};

}  // namespace carousel
