#pragma once

#include <carousel/tensor/tensor.h>

#include <array>

namespace carousel {

/// A counter-based random generator (Philox 4x32-10; Salmon, Moraes, Dror, Shaw 2011): number `i` of stream `seed` is
/// a pure function of the two, so a tensor filled by several threads holds the same numbers as one filled by one.
/// The whole state is seed and counter; both can be saved and restored.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t counter = 0) : seed_(seed), counter_(counter) {}

  uint64_t seed() const { return seed_; }
  uint64_t counter() const { return counter_; }  ///< blocks of four 32-bit numbers used so far

  uint64_t next_u64();                              ///< uses one block
  double next_uniform();                            ///< in [0, 1), 53 bits; uses one block
  int64_t next_integer(int64_t low, int64_t high);  ///< in [low, high), unbiased; throws ValueError when empty

  // New tensors. Throw ShapeError for negative sizes, ValueError for parameters or a dtype that make no sense.
  /// Floating, in [low, high), low <= high and finite.
  Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = DType::float32);
  /// Floating; a finite mean and deviation, which is not negative.
  Tensor normal(const Shape& shape, double mean = 0, double deviation = 1, DType dtype = DType::float32);
  Tensor integers(const Shape& shape, int64_t low, int64_t high);  ///< int64 in [low, high), low < high
  Tensor permutation(int64_t count);                               ///< int64 [count], each of 0 .. count - 1 once
  /// One index per row of `weights` [.., V], floating (not negative, finite, a positive sum; ValueError otherwise):
  /// int64
  /// [..]. Throws ShapeError for rank 0.
  Tensor multinomial(const Tensor& weights);

  /// Block `counter` of stream `seed`: the pure function behind everything.
  static std::array<uint32_t, 4> block(uint64_t seed, uint64_t counter);

 private:
  uint64_t take(uint64_t blocks);  ///< advances the counter, returns where it was
  uint64_t seed_;
  uint64_t counter_;
};

}  // namespace carousel
