#include "char_lm/bundle.h"

#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/reduce.h>

#include <cmath>

namespace carousel::examples {

namespace {

const std::string failure_name = "bundle/failure", statistics_name = "bundle/statistics", prefix = "bundle/pass/";

// "norm 1.25, largest 0.7", and how many numbers are none.
std::string statistics_of(const Tensor& tensor) {
  const std::vector<double> values = tensor.to(DType::float64).to_vector<double>();
  double squares = 0, largest = 0;
  int64_t wrong = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++wrong;
      continue;
    }
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  return fmt::format("norm {:.4g}, largest {:.4g}{}", std::sqrt(squares), largest,
                     wrong > 0 ? fmt::format(", {} of {} not finite", wrong, values.size()) : "");
}

std::string statistics_of(const CharacterModel& model) {
  std::string text;
  for (const NamedParameter& parameter : model.parameters()) {
    const Tensor gradient = parameter.variable.grad();
    text +=
        fmt::format("{} {}: {}; gradient: {}\n", parameter.name, to_string(parameter.variable.shape()),
                    statistics_of(parameter.variable.value()), gradient.defined() ? statistics_of(gradient) : "none");
  }
  return text;
}

}  // namespace

std::string bundle_in(const std::string& folder, int64_t step) {
  return fmt::format("{}/nonfinite-{}.carousel", folder, step);
}

void add_to_bundle(const std::vector<Pass>& passes, const std::string& failure, const CharacterModel& model,
                   Archive& checkpoint) {
  checkpoint.texts[failure_name] = failure;
  checkpoint.texts[statistics_name] = statistics_of(model);
  for (size_t i = 0; i < passes.size(); ++i) {
    const std::string name = fmt::format("{}{}/", prefix, i);
    checkpoint.tensors[name + "inputs"] = passes[i].window.inputs.contiguous();
    checkpoint.tensors[name + "targets"] = passes[i].window.targets.contiguous();
    checkpoint.tensors[name + "start_and_key"] =
        Tensor::from<int64_t>({passes[i].window.starts ? 1 : 0, static_cast<int64_t>(passes[i].dropout_key)}, {2});
  }
}

std::vector<Pass> passes_of(const Archive& bundle) {
  std::vector<Pass> passes;
  for (size_t i = 0; i == 0 || bundle.tensors.count(fmt::format("{}{}/inputs", prefix, i)) > 0; ++i) {
    const std::string name = fmt::format("{}{}/", prefix, i);
    const Tensor& start_and_key = bundle.tensor(name + "start_and_key");
    check<FormatError>(start_and_key.dtype() == DType::int64 && start_and_key.shape() == Shape{2}, "replay",
                       "{}: {}start_and_key must be int64 [2]: got {} {}", bundle.source, name,
                       to_string(start_and_key.dtype()), to_string(start_and_key.shape()));
    const Tensor &inputs = bundle.tensor(name + "inputs"), &targets = bundle.tensor(name + "targets");
    for (const Tensor& tokens : {inputs, targets}) {
      check<FormatError>(tokens.dtype() == DType::int64 && tokens.rank() == 2 && tokens.shape() == inputs.shape(),
                         "replay", "{}: {}inputs and targets must be int64 [B, T]: got {} {}", bundle.source, name,
                         to_string(tokens.dtype()), to_string(tokens.shape()));
    }
    const std::vector<int64_t> numbers = start_and_key.to_vector<int64_t>();
    passes.push_back({.window = {.inputs = inputs, .targets = targets, .starts = numbers[0] != 0},
                      .dropout_key = static_cast<uint64_t>(numbers[1])});
  }
  return passes;
}

const std::string& failure_of(const Archive& bundle) { return bundle.text(failure_name); }
const std::string& statistics_of(const Archive& bundle) { return bundle.text(statistics_name); }

}  // namespace carousel::examples
