#include <carousel/nn/rnn.h>

#include "expect_error.h"

#include <carousel/autograd/elementwise.h>
#include <carousel/autograd/reduce.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include <cmath>

namespace carousel {
namespace {

constexpr int64_t batch = 5, steps = 40, input_size = 3, hidden = 7;  // more steps than one block of a visitor

/// One set of numbers that the fused and the unrolled sequence both get.
struct Trial {
  explicit Trial(const std::string& nonlinearity)
      : layer(input_size, hidden, {.nonlinearity = nonlinearity}, rng, DType::float64),
        x(Variable::parameter(rng.normal({batch, steps, input_size}, 0, 1, DType::float64))),
        h0(Variable::parameter(rng.normal({batch, hidden}, 0, 1, DType::float64))),
        dy(rng.normal({batch, steps, hidden}, 0, 1, DType::float64)),
        dlast(rng.normal({batch, hidden}, 0, 1, DType::float64)) {}

  Rng rng{7};
  Rnn layer;
  Variable x, h0;
  Tensor dy, dlast;
};

struct Seen {
  Tensor saved;     // [T, B, H]
  Tensor gradient;  // [T, B, H]
};

/// A visitor that lays the blocks it is shown side by side, and checks that they come from the last to the first.
BackwardVisitor collect(Seen& seen, int64_t& next_end) {
  seen = {zeros({steps, batch, hidden}, DType::float64), zeros({steps, batch, hidden}, DType::float64)};
  next_end = steps;
  return [&seen, &next_end](const BackwardView& view) {
    EXPECT_EQ(view.layer, "layers.3");
    const Tensor& gradient = view.gradient.at(0).second;
    EXPECT_EQ(view.gradient.at(0).first, "h");
    const Slice block{.start = view.first_step, .stop = view.first_step + gradient.size(0)};
    EXPECT_EQ(block.stop, next_end);
    next_end = block.start;
    seen.gradient.slice(0, block).copy_(gradient);
    if (!view.saved.empty()) seen.saved.slice(0, block).copy_(view.saved.at(0).second);
  };
}

struct Results {
  std::vector<std::pair<std::string, Tensor>> values;  // outputs and every gradient, by name
  Seen seen;
};

template <class Forward>
Results run(Trial& trial, SequenceOptions options, bool look, const Forward& forward) {
  Results results;
  int64_t next_end = 0;
  options.path = "layers.3";
  if (look) options.visitor = collect(results.seen, next_end);
  const SequenceResult out = forward(trial.x, State{{"h", trial.h0}}, options);
  const Variable last = out.state["h"];
  for (Variable variable : {trial.x, trial.h0}) variable.zero_grad();
  trial.layer.zero_grad();
  (sum(out.output * Variable(trial.dy)) + sum(last * Variable(trial.dlast))).backward();
  EXPECT_EQ(next_end, 0) << "the visitor must see every step";
  results.values = {{"y", out.output.value()}, {"h", last.value()}, {"dx", trial.x.grad()}, {"dh0", trial.h0.grad()}};
  for (const NamedParameter& p : trial.layer.parameters()) results.values.emplace_back(p.name, p.variable.grad());
  return results;
}

/// Sums of 200 products of numbers near 1, each with a chain of 40 steps behind it, in double: 1e-12.
constexpr double tolerance = 1e-12;

void expect_fused_is_unrolled(const std::string& nonlinearity, const SequenceOptions& options, bool look) {
  SCOPED_TRACE(nonlinearity + (options.reset.defined() ? ", reset" : "") +
               (options.lengths.defined() ? ", lengths" : "") + (look ? ", visitor" : ""));
  Trial trial(nonlinearity);
  const Rnn& layer = trial.layer;
  const Results fused = run(trial, options, look, [&](auto&&... args) { return layer.forward(args...); });
  const Results unrolled = run(trial, options, look, [&](auto&&... args) { return layer.unroll(args...); });
  ASSERT_EQ(fused.values.size(), 8U);
  for (size_t i = 0; i < fused.values.size(); ++i) {
    const auto& [name, value] = fused.values[i];
    ASSERT_TRUE(value.defined()) << name;
    EXPECT_TRUE(all_close(value, unrolled.values[i].second, tolerance, tolerance)) << name;
  }
  if (look) {
    if (!options.lengths.defined()) {
      EXPECT_TRUE(all_close(fused.seen.gradient, unrolled.seen.gradient, tolerance, tolerance));
    }
    EXPECT_TRUE(identical(fused.seen.saved.transpose(0, 1).contiguous(), fused.values[0].second.contiguous()));
  }
}

Tensor some_resets() {
  std::vector<bool> reset(batch * steps);
  for (size_t i = 0; i < reset.size(); ++i) reset[i] = i % 9 == 0;
  return Tensor::from(reset, {batch, steps});
}

Tensor some_lengths() { return Tensor::from(std::vector<int64_t>{40, 0, 1, 33, 32}, {batch}); }

TEST(Rnn, FusedIsUnrolledInValuesAndEveryGradient) {
  for (const char* nonlinearity : {"tanh", "relu"}) {
    for (const Tensor& reset : {Tensor(), some_resets()}) {
      for (const Tensor& lengths : {Tensor(), some_lengths()}) {
        for (const bool look : {false, true}) {
          SequenceOptions options;
          options.reset = reset;
          options.lengths = lengths;
          expect_fused_is_unrolled(nonlinearity, options, look);
        }
      }
    }
  }
}

TEST(Rnn, AVisitorSeesAShortRowAsIfItWereAloneAndOfItsLength) {
  Trial trial("tanh");
  SequenceOptions options;
  options.lengths = some_lengths();
  const Results fused = run(trial, options, true, [&trial](auto&&... args) { return trial.layer.forward(args...); });
  const Tensor whole = fused.seen.gradient.transpose(0, 1);  // [B, T, H]
  const std::vector<int64_t> lengths = some_lengths().to_vector<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    const Tensor seen = whole.select(0, b), after = seen.slice(0, {.start = length}).contiguous();
    EXPECT_TRUE(identical(after, zeros(after.shape(), DType::float64)));
    if (length == 0) continue;
    const Slice row{.start = b, .stop = b + 1}, live{.stop = length};
    Tensor alone = zeros({length, hidden}, DType::float64);
    SequenceOptions look;
    look.visitor = [&alone](const BackwardView& view) {
      alone.slice(0, {.start = view.first_step, .stop = view.first_step + 1})
          .copy_(view.gradient.at(0).second.select(1, 0));
    };
    const Variable x = Variable::parameter(trial.x.value().slice(0, row).slice(1, live).clone());
    const SequenceResult out = trial.layer.unroll(x, {{"h", trial.h0.value().slice(0, row)}}, look);
    const Tensor dy = trial.dy.slice(0, row).slice(1, live), dlast = trial.dlast.slice(0, row);
    (sum(out.output * Variable(dy)) + sum(out.state["h"] * Variable(dlast))).backward();
    EXPECT_TRUE(all_close(seen.slice(0, live), alone, tolerance, tolerance)) << "row " << b;
  }
}

TEST(Rnn, OneStepIsTheFormula) {
  Rng rng(1);
  const Rnn layer(1, 1, {}, rng, DType::float64);
  const std::vector<NamedParameter> p = layer.parameters();
  const auto number = [&p](int i) { return p[i].variable.value().item(); };
  const double x = 0.3, h = -0.7;
  const double expected = std::tanh(number(0) * x + number(2) + number(1) * h + number(3));
  const State state{{"h", Tensor::from({h}, {1, 1}, DType::float64)}};
  const StepResult result = layer.step(Tensor::from({x}, {1, 1}, DType::float64), state);
  EXPECT_NEAR(result.output.value().item(), expected, 1e-15);  // two or three roundings of a number below 1
  EXPECT_EQ(result.state["h"].value().item(), result.output.value().item());
}

TEST(Rnn, ParametersHaveTheirNamesSizesAndBound) {
  Rng rng(2);
  const Rnn layer(3, 16, {}, rng);
  std::vector<std::string> names, shapes;
  for (const NamedParameter& p : layer.parameters()) {
    names.push_back(p.name);
    shapes.push_back(to_string(p.variable.shape()));
    EXPECT_EQ(p.decay, p.variable.rank() == 2);
    EXPECT_LE(max(abs(p.variable.value())).item(), 0.25);  // 1 / sqrt(16)
  }
  EXPECT_EQ(names, (std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}));
  EXPECT_EQ(shapes, (std::vector<std::string>{"[16, 3]", "[16, 16]", "[16]", "[16]"}));
}

TEST(Rnn, LengthsEndARowAndKeepItsState) {
  Trial trial("tanh");
  SequenceOptions options;
  options.lengths = some_lengths();
  const State start{{"h", trial.h0}};
  const SequenceResult out = trial.layer.forward(trial.x, start, options);
  const Tensor y = out.output.value(), last = out.state["h"].value();
  EXPECT_TRUE(identical(last.select(0, 1), trial.h0.value().select(0, 1))) << "no step: the state as it came";
  EXPECT_TRUE(identical(last.select(0, 3), y.select(0, 3).select(0, 32)));
  EXPECT_TRUE(identical(y.select(0, 3).slice(0, {.start = 33}).contiguous(), zeros({7, hidden}, DType::float64)));
  EXPECT_FALSE(any(equal(last.select(0, 3), 0)));
}

TEST(Rnn, ATimeMajorInputStaysTimeMajor) {
  Trial trial("tanh");
  const Tensor time_major = trial.x.value().transpose(0, 1).contiguous();
  const SequenceResult out = trial.layer.forward(time_major.transpose(0, 1), State{{"h", trial.h0}});
  EXPECT_TRUE(out.output.value().transpose(0, 1).is_contiguous());
  const SequenceResult usual = trial.layer.forward(trial.x, State{{"h", trial.h0}});
  EXPECT_TRUE(identical(out.output.value().contiguous(), usual.output.value().contiguous()));
}

TEST(Rnn, NoStepsGiveTheStateAsItCame) {
  Trial trial("tanh");
  const SequenceResult out = trial.layer.forward(zeros({batch, 0, input_size}, DType::float64), {{"h", trial.h0}});
  EXPECT_EQ(to_string(out.output.shape()), "[5, 0, 7]");
  EXPECT_TRUE(identical(out.state["h"].value(), trial.h0.value()));
}

TEST(Rnn, ErrorsNameTheLayerTheRuleAndTheValues) {
  Trial trial("tanh");
  const State state{{"h", trial.h0}};
  test::expect_error<ShapeError>(
      [&] {
        trial.layer.forward(zeros({5, 4, 2}, DType::float64), state);
      },
      {"[Rnn]", "D = 3", "[5, 4, 2]"});
  test::expect_error<ShapeError>(
      [&] {
        trial.layer.step(zeros({4, 3}, DType::float64), state);
      },
      {"[Rnn]", "state h", "[4, 7]", "[5, 7]"});
  Rng rng(1);
  test::expect_error<ValueError>([&] { Rnn(0, 4, {}, rng); }, {"[Rnn]", "positive", "0 and 4"});
  test::expect_error<ValueError>([&] { Rnn(4, 4, {.nonlinearity = "sine"}, rng); }, {"[Rnn]", "nonlinearity", "sine"});
}

TEST(Rnn, BackwardRefusesAnOutputChangedInPlace) {
  Trial trial("tanh");
  const SequenceResult out = trial.layer.forward(trial.x, State{{"h", trial.h0}});
  Tensor y = out.output.value();
  const Variable loss = sum(out.output);
  mul_(y, 2.0);
  EXPECT_THROW(loss.backward(), ValueError);
}

}  // namespace
}  // namespace carousel
