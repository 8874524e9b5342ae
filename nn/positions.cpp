#include <carousel/nn/positions.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/index.h>
#include <carousel/nn/init.h>

namespace carousel {
namespace {

constexpr std::string_view name = "LearnedPositions";

}  // namespace

LearnedPositions::LearnedPositions(int64_t context, int64_t size, Rng& rng, DType dtype) {
  check<ValueError>(context > 0 && size > 0, name, "sizes must be positive: got {} and {}", context, size);
  weight_ = add_parameter("weight", init::normal({context, size}, init::gpt2_deviation, rng, dtype), Decay::yes);
}

LearnedPositions::Result LearnedPositions::forward(const Variable& x, const Tensor& read,
                                                   const SequenceOptions& options) const {
  check<ShapeError>(x.rank() == 3 && x.size(2) == weight_.size(1), name, "x must be [B, T, D] with D = {}: got {}",
                    weight_.size(1), to_string(x.shape()));
  const int64_t rows = x.size(0), steps = x.size(1);
  check<ShapeError>(read.shape() == Shape{rows}, name, "position must have shape {}: got {}", to_string(Shape{rows}),
                    to_string(read.shape()));
  check_options(name, rows, steps, options);
  std::vector<int64_t> now = read.to_vector<int64_t>();
  std::vector<int64_t> positions(static_cast<size_t>(steps * rows));  // [T, B]
  for (int64_t row = 0; row < rows; ++row) {
    int64_t& count = now[static_cast<size_t>(row)];
    const int64_t length = options.lengths.defined() ? options.lengths.select(0, row).item<int64_t>() : steps;
    const std::vector<bool> resets =
        options.reset.defined() ? options.reset.select(0, row).to_vector<bool>() : std::vector<bool>();
    for (int64_t t = 0; t < length; ++t) {
      if (!resets.empty() && resets[static_cast<size_t>(t)]) count = 0;
      check<ValueError>(count < context(), name, "a row may read {} tokens, the context: got {}", context(),
                        count + length - t);
      positions[static_cast<size_t>(t * rows + row)] = count++;
    }
  }
  const Tensor index = Tensor::from(positions, {steps, rows}).transpose(0, 1);
  return {x + take_rows(weight_, index), Tensor::from(now, {rows})};
}

}  // namespace carousel
