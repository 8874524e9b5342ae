#include <carousel/autograd/reduce.h>
#include <carousel/nn/growing.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/join.h>
#include <carousel/tensor/random.h>

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace carousel {
namespace {

Tensor numbers(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  return rng.normal(shape, 0, 1);
}

TEST(Growing, IsConcatenateStepByStep) {
  for (const int64_t axis : {0, 1, 2}) {
    Shape shape{3, 4, 5}, empty{3, 4, 5};
    shape[static_cast<int>(axis)] = 2;
    empty[static_cast<int>(axis)] = 0;
    Tensor grown = zeros(empty), joined = zeros(empty);
    for (uint64_t step = 0; step < 40; ++step) {
      const Tensor more = numbers(shape, step);
      grown = grow(grown, more, axis);
      joined = concatenate(std::vector<Tensor>{joined, more}, axis);
      ASSERT_TRUE(identical(grown.contiguous(), joined)) << "axis " << axis << ", step " << step;
    }
  }
}

TEST(Growing, MovesOnlyWhenItsRoomIsFull) {
  Tensor grown = zeros({2, 0, 8});
  std::set<std::shared_ptr<Storage>> storages;
  int64_t moves = 0;
  for (int64_t step = 0; step < 1000; ++step) {
    const Tensor before = grown;
    grown = grow(grown, full({2, 1, 8}, static_cast<double>(step)), 1);
    moves += grown.storage() != before.storage();
  }
  EXPECT_LE(moves, 8);  // room for 16, 34, 70, .. steps: doubling from 16 to 1000 takes six
  EXPECT_EQ(grown.select(0, 1).select(1, 3).select(0, 700).item(), 700);
}

TEST(Growing, TwoThatGoOnFromOnePastLeaveEachOtherAlone) {
  const Tensor past = grow(numbers({1, 3, 2}, 1), numbers({1, 1, 2}, 2), 1), kept = past.clone();
  const Tensor one = grow(past, ones({1, 1, 2}), 1), two = grow(past, zeros({1, 1, 2}), 1);
  EXPECT_EQ(one.storage(), past.storage());
  EXPECT_NE(two.storage(), past.storage());
  const Tensor one_more = grow(one, ones({1, 1, 2}), 1), two_more = grow(two, zeros({1, 1, 2}), 1);
  EXPECT_TRUE(identical(past.contiguous(), kept));
  EXPECT_TRUE(identical(one_more.contiguous(), concatenate(std::vector<Tensor>{kept, ones({1, 2, 2})}, 1)));
  EXPECT_TRUE(identical(two_more.contiguous(), concatenate(std::vector<Tensor>{kept, zeros({1, 2, 2})}, 1)));
}

TEST(Growing, APartOfAPastIsNotItsEnd) {
  const Tensor past = grow(zeros({2, 0, 2}), numbers({2, 6, 2}, 3), 1);
  for (const Tensor& part : {past.slice(1, {.stop = 4}), past.slice(1, {.start = 2}), past.slice(0, {.stop = 1}),
                             past.slice(2, {.stop = 1}), past.transpose(0, 2)}) {
    Shape shape = part.shape();
    shape[1] = 1;
    const Tensor grown = grow(part, ones(shape), 1);
    EXPECT_NE(grown.storage(), past.storage());
    EXPECT_TRUE(identical(grown.slice(1, {.stop = -1}).contiguous(), part.contiguous()));
  }
  EXPECT_EQ(grow(past, ones({2, 1, 2}), 1).storage(), past.storage());
}

TEST(Growing, ThreadsThatGoOnFromOnePastDoNotMeet) {
  const Tensor past = grow(zeros({1, 0, 64}), zeros({1, 4, 64}), 1);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&past, t] {
      Tensor own = past;
      for (int step = 0; step < 50; ++step) own = grow(own, full({1, 1, 64}, t), 1);
      EXPECT_TRUE(identical(own.slice(1, {.start = 4}).contiguous(), full({1, 50, 64}, t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Growing, RecordsWhereAGradientIsWanted) {
  const Variable past = Variable::parameter(numbers({2, 3}, 4)), more = Variable::parameter(numbers({2, 1}, 5));
  const Variable grown = grow(past, more, 1);
  EXPECT_EQ(grown.op(), Op::concatenate);
  sum(grown).backward();
  EXPECT_TRUE(identical(past.grad().contiguous(), ones({2, 3})));
  EXPECT_TRUE(identical(more.grad().contiguous(), ones({2, 1})));
  const NoGrad no_grad;
  EXPECT_FALSE(grow(past, more, 1).requires_grad());
}

}  // namespace
}  // namespace carousel
