#include <carousel/nn/positions.h>
#include <carousel/tensor/factory.h>

#include <gtest/gtest.h>

#include "expect_error.h"

namespace carousel {
namespace {

// Positions of a table whose row p holds the number p, read off zeros.
std::vector<double> positions_of(const LearnedPositions& table, const std::vector<int64_t>& read, int64_t steps,
                                 const SequenceOptions& options, std::vector<int64_t>* next = nullptr) {
  const auto rows = static_cast<int64_t>(read.size());
  const auto result = table.forward(zeros({rows, steps, 1}, DType::float64), Tensor::from(read), options);
  if (next != nullptr) *next = result.next.to_vector<int64_t>();
  return result.output.value().reshape({rows * steps}).to_vector<double>();
}

TEST(LearnedPositions, CountOnBeginAnewAtAResetAndStandStillBehindTheEnd) {
  Rng rng(1);
  const LearnedPositions table(8, 1, rng, DType::float64);
  Tensor weight = table.parameters()[0].variable.value();
  weight.copy_(arange(8).to(DType::float64).unsqueeze(1));
  Tensor reset = zeros({3, 4}, DType::boolean);
  reset.select(0, 1).slice(0, {.start = 2, .stop = 3}).fill_(1);
  const SequenceOptions options{.reset = reset, .lengths = Tensor::from(std::vector<int64_t>{4, 4, 1})};
  std::vector<int64_t> next;
  EXPECT_EQ(positions_of(table, {0, 5, 7}, 4, options, &next),
            (std::vector<double>{0, 1, 2, 3, 5, 6, 0, 1, 7, 0, 0, 0}));
  EXPECT_EQ(next, (std::vector<int64_t>{4, 2, 8}));
}

TEST(LearnedPositions, NameTheContextAndWhatWasAskedFor) {  // HD-29
  Rng rng(1);
  const LearnedPositions table(8, 1, rng, DType::float64);
  test::expect_error<ValueError>([&] { positions_of(table, {0}, 9, {}); }, {"[LearnedPositions]", "8", "9"});
  test::expect_error<ValueError>([&] { positions_of(table, {6}, 3, {}); }, {"8", "9"});
  test::expect_error<ValueError>([&] { LearnedPositions(0, 1, rng); }, {"[LearnedPositions]", "0 and 1"});
}

TEST(LearnedPositions, NameWhatDoesNotFit) {
  Rng rng(1);
  const LearnedPositions table(8, 1, rng, DType::float64);
  const auto lengths = [](const std::vector<int64_t>& values) {
    return SequenceOptions{.lengths = Tensor::from(values)};
  };
  test::expect_error<ValueError>([&] { positions_of(table, {0, 0}, 4, lengths({4, 90000})); }, {"[0, 4]", "90000"});
  test::expect_error<ShapeError>([&] { positions_of(table, {0, 0}, 4, lengths({4})); }, {"lengths", "[2]", "[1]"});
  const SequenceOptions whole_numbers{.reset = zeros({2, 4}, DType::int64)};
  test::expect_error<ValueError>([&] { positions_of(table, {0, 0}, 4, whole_numbers); }, {"reset", "int64"});
  const Tensor x = zeros({2, 4, 1}, DType::float64);
  test::expect_error<ShapeError>([&] { table.forward(x, Tensor::from(std::vector<int64_t>{0})); }, {"[2]", "[1]"});
  test::expect_error<ShapeError>([&] { table.forward(zeros({2, 4, 3}), zeros({2}, DType::int64)); }, {"D = 1"});
}

}  // namespace
}  // namespace carousel
