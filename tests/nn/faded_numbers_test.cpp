#include <carousel/autograd/reduce.h>
#include <carousel/nn/lstm.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/runtime.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace carousel {
namespace {

// The trainer's case: all weights -0.1, so that with inputs of one sign the gates close and what they let pass fades.
TEST(FadedNumbers, AnLstmTakesNoLongerForInputsOfEitherSign) {  // HD-37 (b); its bar
  Rng rng(1);
  Lstm lstm(1, 128, {}, rng);
  for (const NamedParameter& parameter : lstm.parameters()) {
    Tensor value = parameter.variable.value();
    value.fill_(-0.1);
  }
  const FlushDenormals scope;
  const auto seconds = [&lstm](double input) {
    const auto start = std::chrono::steady_clock::now();
    lstm.zero_grad();
    sum(lstm.forward(full({1, 200, 1}, input), lstm.initial_state(1)).output).backward();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double positive = INFINITY, negative = INFINITY;
  for (int pass = 0; pass < 100; ++pass) {  // in turns, and the shortest: others use the machine too
    positive = std::min(positive, seconds(0.1));
    negative = std::min(negative, seconds(-0.1));
  }
  EXPECT_LE(std::max(positive, negative), 1.5 * std::min(positive, negative));
}

}  // namespace
}  // namespace carousel
