#include <carousel/nn/gru.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/rnn.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/storage.h>

#include <memory>

#include "sequence_suite.h"

/// Backward of the fused layers over several blocks of steps: 32 at a time where a batch has 32 rows or more.
namespace carousel::test {
namespace {

constexpr int64_t batch = 33, steps = 70;  // blocks of 32, 32 and 6 steps

// Every form that has a kernel.
std::vector<std::unique_ptr<SequenceLayer>> fused_layers(int64_t inputs, int64_t hidden, DType dtype) {
  Rng rng(1);
  std::vector<std::unique_ptr<SequenceLayer>> layers;
  layers.push_back(std::make_unique<Rnn>(inputs, hidden, RnnConfig{}, rng, dtype));
  for (const bool flag : {false, true}) {
    layers.push_back(std::make_unique<Lstm>(inputs, hidden, LstmConfig{.forget_gate = flag}, rng, dtype));
    layers.push_back(std::make_unique<Gru>(inputs, hidden, GruConfig{.reset_after = flag}, rng, dtype));
  }
  return layers;
}

TEST(RecurrentBlocks, GiveTheGradientsOfTheUnrolledLayer) {
  for (const auto& layer : fused_layers(3, 4, DType::float64)) {
    const Tensor x = random({batch, steps, 3}, 8);
    for (const SequenceOptions& options : {SequenceOptions{}, SequenceOptions{.reset = some_resets(batch, steps),
                                                              .lengths = some_lengths(batch, steps)}}) {
      SCOPED_TRACE(testing::Message() << layer->parameters().front().name << options.reset.defined());
      // Sums over 2,310 rows: some thousands of roundings of 1e-16 of numbers up to 100.
      expect_close(everything(*layer, x, options, true), everything(*layer, x, options, false), 1e-10);
    }
  }
}

TEST(RecurrentBlocks, OfALookupGiveTheGradientsOfItsRows) {
  Rng rng(2);
  const Tensor numbers = random({7, 3}, 9), tokens = rng.integers({batch, steps}, 0, 7);
  for (const auto& layer : fused_layers(3, 4, DType::float64)) {
    const auto gradients = [&](bool at_once) {
      layer->zero_grad();
      const Lookup x{Variable::parameter(numbers), tokens};
      const State start = random_state(*layer, batch);
      weigh(at_once ? layer->forward_lookup(x, start) : layer->forward(x.rows(), start)).backward();
      Everything all{{"d table", x.table.grad()}};
      for (const NamedParameter& parameter : layer->parameters()) {
        all.emplace_back(parameter.name, parameter.variable.grad());
      }
      return all;
    };
    expect_close(gradients(true), gradients(false), 1e-10);  // as above
  }
}

TEST(RecurrentBlocks, LeaveNoRoomForTheGradientsOfAllGates) {
  const int64_t hidden = 64, many = 512;
  const Tensor x = random({32, many, 4}, 3, DType::float32);
  for (const auto& layer : fused_layers(4, hidden, DType::float32)) {
    const SequenceResult result = layer->forward(x, layer->initial_state(32));
    const uint64_t before = storage_stats().live_bytes;
    reset_storage_peak();
    result.output.backward(ones({many, 32, hidden}).transpose(0, 1));
    // The cotangent is as large as one gate; of the rest a sixteenth is there at a time.
    const uint64_t gate = 32 * many * hidden * sizeof(float);
    EXPECT_LT(storage_stats().peak_bytes - before, gate + gate / 2);
  }
}

}  // namespace
}  // namespace carousel::test
