#include <carousel/autograd/gradcheck.h>
#include <carousel/autograd/shape.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>

#include <algorithm>

#include "parameter_gradients.h"
#include "sequence_suite.h"

/// The gradients of every member of the suite.
namespace carousel::test {
namespace {

TEST_P(SequenceSuite, GradientsPassTheCheck) {
  for (const int64_t steps : {1, 2, 5}) {
    for (const int64_t batch : {1, 3}) {
      for (const bool with_reset : {false, true}) {
        const SequenceOptions options{.reset = with_reset ? some_resets(batch, steps) : Tensor()};
        const State initial = random_state(*layer_, batch);
        std::vector<Tensor> inputs = {random({batch, steps, layer_->input_size()}, 7)};
        std::vector<std::string> names;
        for (const auto& [name, value] : initial.values()) {
          names.push_back(name);
          inputs.push_back(value.value());
        }
        const auto function = [&](std::span<const Variable> in) {
          State state = initial;
          for (size_t i = 0; i < names.size(); ++i) state.set(names[i], in[i + 1]);
          return weigh(layer_->forward(in[0], state, options));
        };
        const GradcheckResult result = gradcheck(function, inputs);
        EXPECT_TRUE(result) << "T " << steps << ", B " << batch << ", reset " << with_reset << ": " << result.message;
      }
    }
  }
}

TEST_P(SequenceSuite, ParameterGradientsAreDifferenceQuotients) {
  for (const int64_t steps : {1, 2, 5}) {
    for (const int64_t batch : {1, 3}) {
      SCOPED_TRACE(testing::Message() << "T " << steps << ", B " << batch);
      const Tensor x = random({batch, steps, layer_->input_size()}, 7);
      const SequenceOptions options{.reset = some_resets(batch, steps), .lengths = some_lengths(batch, steps)};
      const State state = random_state(*layer_, batch);
      expect_difference_quotients(*layer_, [&] { return weigh(layer_->forward(x, state)); });
      expect_difference_quotients(*layer_, [&] { return weigh(layer_->forward(x, state, options)); });
    }
  }
}

TEST_P(SequenceSuite, FusedEqualsUnrolledInValuesAndEveryGradient) {
  for (const int64_t steps : {1, 2, 5, 40}) {
    for (const int64_t batch : {1, 3}) {
      const Tensor x = random({batch, steps, layer_->input_size()}, 8);
      const Tensor turned = x.transpose(0, 1).clone().transpose(0, 1);  // time-major in memory
      for (const SequenceOptions& options :
           {SequenceOptions{}, SequenceOptions{.dropout_key = 5}, SequenceOptions{.reset = some_resets(batch, steps)},
            SequenceOptions{.lengths = some_lengths(batch, steps)},
            SequenceOptions{.reset = some_resets(batch, steps), .lengths = some_lengths(batch, steps)}}) {
        SCOPED_TRACE(testing::Message() << "T " << steps << ", B " << batch << ", reset " << options.reset.defined()
                                        << ", lengths " << options.lengths.defined());
        const auto unrolled = everything(*layer_, x, options, false);
        expect_close(everything(*layer_, x, options, true), unrolled, 1e-12);
        expect_close(everything(*layer_, turned, options, true), unrolled, 1e-12);
      }
    }
  }
}

TEST_P(SequenceSuite, SplitAndCarryEqualsWholeAlsoInTheGradients) {
  const Tensor input = random({2, 10, layer_->input_size()}, 10);
  const auto whole = everything(*layer_, input, {}, true);
  layer_->zero_grad();
  const Variable x = Variable::parameter(input);
  const State state = random_state(*layer_, 2);
  const SequenceResult first = layer_->forward(slice(x, 1, {.stop = 4}), state);
  const SequenceResult second = layer_->forward(slice(x, 1, {.start = 4}), first.state);
  const std::vector<Variable> outputs = {first.output, second.output};
  weigh({concatenate(outputs, 1), second.state}).backward();
  EXPECT_TRUE(all_close(x.grad(), whole[1].second, 1e-12, 1e-12));
  size_t next = 2;
  for (const auto& [name, value] : second.state.values()) {
    EXPECT_TRUE(all_close(value.value(), whole[next++].second, 1e-12, 1e-12)) << name;
    EXPECT_TRUE(all_close(state[name].grad(), whole[next++].second, 1e-12, 1e-12)) << "d initial " << name;
  }
  for (const NamedParameter& parameter : layer_->parameters()) {
    EXPECT_TRUE(all_close(parameter.variable.grad(), whole[next++].second, 1e-12, 1e-12)) << parameter.name;
  }
}

TEST_P(SequenceSuite, TwoBackwardCallsOnARetainedGraphAgree) {
  const Variable x = Variable::parameter(random({2, 5, layer_->input_size()}, 14));
  const Variable loss = weigh(layer_->forward(x, random_state(*layer_, 2)));
  loss.backward({.retain_graph = true});
  const Tensor once = x.grad().clone();
  loss.backward();
  EXPECT_TRUE(identical(x.grad().contiguous(), (once + once).contiguous()));
}

TEST_P(SequenceSuite, AVisitorSeesWhatTheUnrolledStatesGather) {
  using Seen = std::vector<std::pair<std::string, Tensor>>;  // by name and step
  const auto look = [&](bool fused) {
    Seen seen;
    const auto visitor = [&](const BackwardView& view) {
      for (const auto& [name, gradient] : view.gradient) {
        for (int64_t t = gradient.size(0) - 1; t >= 0; --t) {
          seen.emplace_back(name + std::to_string(view.first_step + t), gradient.select(0, t).clone());
        }
      }
    };
    everything(*layer_, random({3, 50, layer_->input_size()}, 15),
               {.reset = some_resets(3, 50), .lengths = some_lengths(3, 50), .visitor = visitor}, fused);
    std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return seen;
  };
  const Seen fused = look(true);
  ASSERT_GE(fused.size(), 50U);
  expect_close(fused, look(false), 1e-12);
}

}  // namespace
}  // namespace carousel::test
