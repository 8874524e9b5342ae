#include <carousel/nn/decaying_memory.h>

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/matmul.h>
#include <carousel/nn/init.h>
#include <carousel/nn/linear_recurrence.h>
#include <carousel/tensor/factory.h>

#include <cmath>

namespace carousel {

Fields fields(DecayingMemoryConfig& config) {
  return {{.name = "decay",
           .target = &config.decay,
           .help = "what is left of the memory after a step",
           .minimum = 0,
           .maximum = 1},
          {.name = "learned", .target = &config.learned, .help = "train a decay for each channel"}};
}

DecayingMemory::DecayingMemory(int64_t input_size, int64_t hidden_size, const DecayingMemoryConfig& config, Rng& rng,
                               DType dtype)
    : config_(config) {
  check<ValueError>(input_size > 0 && hidden_size > 0, "DecayingMemory", "sizes must be positive: got {} and {}",
                    input_size, hidden_size);
  check_fields("DecayingMemory", fields(config_));
  weight_ =
      add_parameter("weight", init::fan_in_uniform({hidden_size, input_size}, input_size, rng, dtype), Decay::yes);
  if (!config_.learned) return;
  check<ValueError>(config_.decay > 0 && config_.decay < 1, "DecayingMemory",
                    "a decay that is learned must begin inside (0, 1): got {}", config_.decay);
  logit_ = add_parameter("logit", init::constant({hidden_size}, std::log(config_.decay / (1 - config_.decay)), dtype),
                         Decay::no);
}

std::vector<StateShape> DecayingMemory::state_shapes(int64_t batch) const {
  return {{"h", {batch, output_size()}, dtype()}};
}

Variable DecayingMemory::lambda() const {
  return config_.learned ? sigmoid(logit_) : Variable(full({output_size()}, config_.decay, dtype()));
}

StepResult DecayingMemory::step(const Variable& x_t, const State& state, const StepOptions& options) const {
  check_step("DecayingMemory", *this, x_t, state, options);
  const Variable h = lambda() * reset_rows(state, options.reset)["h"] + linear(x_t, weight_, {});
  return {.output = h, .state = {{"h", h}}};
}

SequenceResult DecayingMemory::forward(const Variable& x, const State& state, const SequenceOptions& options) const {
  check_sequence("DecayingMemory", *this, x, state, options);
  const Variable inputs = linear(zero_after_end(x, options.lengths), weight_, {});
  return linear_recurrence(lambda(), inputs, state["h"], options);
}

SequenceResult DecayingMemory::forward_lookup(const Lookup& x, const State& state,
                                              const SequenceOptions& options) const {
  if (!x.is_shorter()) return SequenceLayer::forward_lookup(x, state, options);
  check_sequence("DecayingMemory", *this, x, state, options);
  const Lookup inputs{linear(x.zero_unread(options.lengths), weight_, {}), x.tokens};
  return linear_recurrence(lambda(), inputs.rows(), state["h"], options);
}

}  // namespace carousel
