#pragma once

#include <carousel/nn/registry.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// What every kind of sequence layer in the registry must do: sequence_suite_test.cpp and sequence_gradients_test.cpp.
/// A new kind is tested by being registered.
namespace carousel::test {

/// A layer that the suite is run over.
struct Member {
  std::string name;
  std::function<std::unique_ptr<SequenceLayer>(DType, Rng&)> make;
};

/// Every kind in the registry, then configurations of them, then layers that are part of a kind.
std::vector<Member> members();
std::unique_ptr<SequenceLayer> make_layer(const Member& member, DType dtype = DType::float64);

class SequenceSuite : public testing::TestWithParam<Member> {
 protected:
  std::unique_ptr<SequenceLayer> layer_ = make_layer(GetParam());
};

Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::float64);
/// A reset in the middle of row 0, and one at the very beginning of the last row.
Tensor some_resets(int64_t batch, int64_t steps);
/// Lengths steps, steps - 1, .., not below 0.
Tensor some_lengths(int64_t batch, int64_t steps);
/// A state whose numbers are all different from zero, as leaves that gather gradients.
State random_state(const SequenceLayer& layer, int64_t batch);
/// Weighs every number of output and final state differently, so that no gradient can hide behind another.
Variable weigh(const SequenceResult& result);

using Everything = std::vector<std::pair<std::string, Tensor>>;
/// Everything that a pass has made: values, and after the backward that this calls every gradient.
Everything everything_of(const SequenceLayer& layer, const Variable& input, const State& state,
                         const SequenceResult& result);
/// The same of a pass over `input`.
Everything everything(SequenceLayer& layer, const Tensor& input, const SequenceOptions& options, bool fused,
                      const State& state);
Everything everything(SequenceLayer& layer, const Tensor& input, const SequenceOptions& options, bool fused);
void expect_close(const Everything& a, const Everything& b, double tolerance);

}  // namespace carousel::test
