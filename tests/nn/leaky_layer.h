#pragma once

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/nn/sequence_layer.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>

namespace carousel::test {

/// A layer whose numbers can be worked out on paper, h <- a h + W x, y = h, with a count of steps as bookkeeping. It
/// has no kernel: what holds here holds by the definition.
class LeakyLayer : public SequenceLayer {
 public:
  LeakyLayer(int64_t input_size, int64_t hidden_size, double decay, Rng& rng) {
    decay_ = add_parameter("decay", full({hidden_size}, decay, DType::float64), Decay::no);
    weight_ = add_parameter("weight", rng.uniform({hidden_size, input_size}, -1, 1, DType::float64), Decay::yes);
  }

  int64_t input_size() const override { return weight_.size(1); }
  int64_t output_size() const override { return weight_.size(0); }
  DType dtype() const override { return DType::float64; }
  int64_t state_size(int64_t) const override { return output_size() + 1; }

  std::vector<StateShape> state_shapes(int64_t batch) const override {
    return {{"h", {batch, output_size()}, dtype()}, {"steps", {batch}, DType::int64}};
  }

  StepResult step(const Variable& x_t, const State& state, const StepOptions& options) const override {
    check_step("LeakyLayer", *this, x_t, state, options);
    const State before = reset_rows(state, options.reset);
    State next{{"h", decay_ * before["h"] + linear(x_t, weight_, {})}};
    next.set_count("steps", before.count("steps") + 1.0);
    return {next["h"], next};
  }

 private:
  Variable decay_, weight_;
};

}  // namespace carousel::test
