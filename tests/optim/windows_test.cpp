#include "../nn/expect_error.h"

#include <carousel/optim/windows.h>
#include <carousel/tensor/compare.h>
#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>

#include <set>

namespace carousel {
namespace {

using test::expect_error;

TrainingWindows make(int64_t tokens, int64_t rows, int64_t steps, WindowOrder order = WindowOrder::contiguous) {
  return TrainingWindows(arange(tokens), rows, steps, order);
}

TEST(TrainingWindows, StreamsRunOnFromWindowToWindow) {
  TrainingWindows windows = make(25, 2, 3);  // streams of 12 steps: 0..12 and 12..24
  Rng rng(1);
  EXPECT_EQ(windows.windows_per_pass(), 4);
  for (int64_t w = 0; w < 9; ++w) {
    const Window window = windows.next(rng);
    const int64_t first = w % 4 * 3;
    EXPECT_EQ(window.inputs.to_vector<int64_t>(),
              (std::vector<int64_t>{first, first + 1, first + 2, first + 12, first + 13, first + 14}));
    EXPECT_TRUE(identical((window.inputs + 1.0).contiguous(), window.targets.contiguous()));
    EXPECT_EQ(window.starts, w % 4 == 0) << w;
  }
  EXPECT_EQ(rng.counter(), 0U) << "contiguous order draws nothing";
}

TEST(TrainingWindows, AreViewsOfTimeMajorMemory) {
  TrainingWindows windows = make(100, 4, 5);
  Rng rng(1);
  const Window window = windows.next(rng);
  EXPECT_EQ(window.inputs.shape(), (Shape{4, 5}));
  EXPECT_TRUE(window.inputs.transpose(0, 1).is_contiguous());
  EXPECT_EQ(window.inputs.storage(), window.targets.storage());
  EXPECT_EQ(window.inputs.storage(), windows.next(rng).inputs.storage());
}

TEST(TrainingWindows, TooShortATextNamesSizeFoundAndSizeNeeded) {  // HD-20
  for (const int64_t found : {0, 1, 30, 2000, 2500}) {
    const std::string got = fmt::format("got {}", found);
    for (const WindowOrder order : {WindowOrder::contiguous, WindowOrder::random}) {
      expect_error<ValueError>([&] { make(found, 50, 50, order); },
                               {"[TrainingWindows]", "at least 2501 tokens", got.c_str()});
    }
  }
  EXPECT_EQ(make(2501, 50, 50).windows_per_pass(), 1);
  EXPECT_EQ(make(51, 1, 50).windows_per_pass(), 1);
  expect_error<ValueError>([] { make(50, 1, 50); }, {"at least 51 tokens", "got 50"});
  expect_error<ValueError>([] { make(50, int64_t{1} << 40, int64_t{1} << 40); }, {"got 50"});
}

TEST(TrainingWindows, RandomOrderFindsEveryPlaceAndAlwaysStarts) {
  TrainingWindows windows = make(14, 4, 3, WindowOrder::random);
  Rng rng(1);
  std::set<int64_t> firsts;
  for (int i = 0; i < 50; ++i) {
    const Window window = windows.next(rng);
    EXPECT_TRUE(window.starts);
    EXPECT_TRUE(window.inputs.transpose(0, 1).is_contiguous());
    EXPECT_TRUE(identical((window.inputs + 1.0).contiguous(), window.targets.contiguous()));
    for (int64_t row = 0; row < 4; ++row) firsts.insert(window.inputs.select(0, row).select(0, 0).item<int64_t>());
  }
  EXPECT_EQ(firsts, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));  // targets end at token 13
}

TEST(TrainingWindows, SeekContinuesWhereItWas) {
  TrainingWindows straight = make(100, 4, 5), resumed = make(100, 4, 5);
  Rng rng(1);
  for (int i = 0; i < 7; ++i) straight.next(rng);
  EXPECT_EQ(straight.position(), 7);
  resumed.seek(7);
  const Window a = straight.next(rng), b = resumed.next(rng);
  EXPECT_TRUE(identical(a.inputs.contiguous(), b.inputs.contiguous()));
  EXPECT_EQ(a.starts, b.starts);
}

TEST(TrainingWindows, RefusesWhatMakesNoSense) {
  expect_error<ValueError>([] { make(10, 0, 3); }, {"positive", "0 and 3"});
  expect_error<ValueError>([] { make(10, 1, -3); }, {"positive", "1 and -3"});
  expect_error<ShapeError>([] { TrainingWindows(zeros({2, 9}, DType::int64), 1, 1, WindowOrder::random); }, {"[2, 9]"});
  expect_error<ValueError>([] { TrainingWindows(zeros({9}), 1, 1, WindowOrder::random); }, {"int64", "float32"});
  TrainingWindows windows = make(10, 1, 3);
  expect_error<ValueError>([&] { windows.seek(-1); }, {"position", "-1"});
}

}  // namespace
}  // namespace carousel
