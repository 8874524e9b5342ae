#include <carousel/tensor/elementwise.h>
#include <carousel/tensor/factory.h>
#include <carousel/tensor/storage.h>

#include <thread>

#include "count_allocations.h"
#include "support.h"

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_BLOCKS 0
#endif
#endif
#ifndef KEEPS_BLOCKS  // what the cache keeps is tested where it keeps anything
#define KEEPS_BLOCKS 1
#endif

namespace carousel {
namespace {

using test::expect_error;

constexpr uint64_t default_cap = uint64_t{1} << 30;

TEST(Storage, IsAlignedForEverySize) {
  for (size_t bytes : {0, 1, 63, 64, 65, 1000, 4097, 1 << 20}) {
    Storage storage(bytes);
    ASSERT_NE(storage.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage.data()) % 64, 0U);
    EXPECT_EQ(storage.bytes(), bytes);
    std::fill_n(static_cast<char*>(storage.data()), bytes, 'x');  // the sanitizer checks that the bytes are there
  }
}

TEST(Storage, CountsWhatLivesAndWhatWaits) {
  trim_storage_cache();
  const StorageStats before = storage_stats();
  EXPECT_EQ(before.cached_bytes, 0U);
  {
    Storage storage(10000);
    const StorageStats during = storage_stats();
    EXPECT_EQ(during.fresh, before.fresh + 1);
    EXPECT_GE(during.live_bytes, before.live_bytes + 10000);
    EXPECT_LE(during.live_bytes, before.live_bytes + 12500);  // size classes waste at most a quarter
  }
  const StorageStats after = storage_stats();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.cached_bytes > 0, KEEPS_BLOCKS);
  trim_storage_cache();
  EXPECT_EQ(storage_stats().cached_bytes, 0U);
}

TEST(Storage, PeakIsTheMostThatWasHeldAtOnceSinceItsReset) {
  reset_storage_peak();
  const StorageStats before = storage_stats();
  EXPECT_EQ(before.peak_bytes, before.live_bytes);
  { Storage first(8192); }
  { Storage second(4096), third(2048); }
  EXPECT_EQ(storage_stats().peak_bytes, before.live_bytes + 8192);  // not the sum of all
  {
    Storage first(8192), second(4096);
    EXPECT_EQ(storage_stats().peak_bytes, before.live_bytes + 8192 + 4096);
  }
  expect_error<ValueError>("[storage] out of memory: got a request for 4611686018427387904 bytes",
                           [] { Storage(size_t{1} << 62); });
  EXPECT_EQ(storage_stats().peak_bytes, before.live_bytes + 8192 + 4096);
  reset_storage_peak();
  EXPECT_EQ(storage_stats().peak_bytes, before.live_bytes);
}

#if KEEPS_BLOCKS
TEST(Storage, SizesOfOneClassServeOneAnother) {
  trim_storage_cache();
  const void* first = nullptr;
  {
    Storage storage(1000);
    first = storage.data();
  }
  const StorageStats before = storage_stats();
  Storage storage(1010);
  EXPECT_EQ(storage.data(), first);
  EXPECT_EQ(storage_stats().fresh, before.fresh);
  EXPECT_EQ(storage_stats().reused, before.reused + 1);
  EXPECT_EQ(storage.version(), 0U);
}
#endif

TEST(Storage, CapLimitsWhatIsKept) {
  trim_storage_cache();
  set_storage_cache_cap(4096);
  { Storage large(8192); }
  EXPECT_EQ(storage_stats().cached_bytes, 0U);
  { Storage a(4096), b(4096); }
  EXPECT_EQ(storage_stats().cached_bytes, KEEPS_BLOCKS ? 4096U : 0U);
  set_storage_cache_cap(0);
  EXPECT_EQ(storage_stats().cached_bytes, 0U);
  set_storage_cache_cap(default_cap);
}

#if KEEPS_BLOCKS
/// Whether a block of this size waits in the cache; it waits there afterwards.
bool is_cached(size_t bytes) {
  const uint64_t before = storage_stats().reused;
  { Storage storage(bytes); }
  return storage_stats().reused > before;
}

TEST(Storage, ColdSizesMakeRoomForNewOnes) {
  trim_storage_cache();
  set_storage_cache_cap(40960);
  { Storage cold(16384), also_cold(16384); }
  { Storage warm(8192); }
  EXPECT_EQ(storage_stats().cached_bytes, 40960U);
  EXPECT_FALSE(is_cached(12288));  // more than the cap with the others: a cold block must go
  EXPECT_TRUE(is_cached(12288));
  EXPECT_TRUE(is_cached(8192));
  EXPECT_EQ(storage_stats().cached_bytes, 16384U + 8192U + 12288U);
  EXPECT_FALSE(is_cached(40960));
  EXPECT_EQ(storage_stats().cached_bytes, 40960U);  // it alone fills the cache
  trim_storage_cache();
  set_storage_cache_cap(default_cap);
}
#endif

TEST(Storage, GivingBackAllocatesNothing) {  // in a destructor, an allocation that fails would end the program
  std::vector<std::unique_ptr<Storage>> storages;
  for (size_t i = 0; i < 100; ++i) storages.push_back(std::make_unique<Storage>(777000 + 200000 * (i % 7)));
  const uint64_t before = test::allocations();
  storages.clear();
  EXPECT_EQ(test::allocations(), before);
}

#if KEEPS_BLOCKS
TEST(Storage, LoopInSteadyStateAllocatesNothingFresh) {
  const Tensor x = full({17, 33}, 0.5), bias = full({33}, 0.1);
  const auto step = [&] {
    Tensor h = tanh(x * 0.9 + bias);
    h = h + sigmoid(h.transpose(0, 1).contiguous()).transpose(0, 1);
    return add_(h, bias).slice(0, {.stop = 5}).clone();
  };
  step();
  const StorageStats before = storage_stats();
  for (int i = 0; i < 100; ++i) step();
  const StorageStats after = storage_stats();
  EXPECT_EQ(after.fresh, before.fresh);
  EXPECT_GE(after.reused, before.reused + 700);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.cached_bytes, before.cached_bytes);
}
#endif

TEST(Storage, ServesSeveralThreads) {
  const StorageStats before = storage_stats();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const Tensor x = full({t + i % 7, 16}, t, DType::int64);
        for (int64_t value : x.to_vector<int64_t>()) ASSERT_EQ(value, t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(storage_stats().live_bytes, before.live_bytes);
}

TEST(Storage, AbsurdSizesAreErrors) {
  expect_error<ValueError>("[storage] out of memory: got a request for 4611686018427387904 bytes",
                           [] { Storage(size_t{1} << 62); });
  expect_error<ValueError>("[storage] out of memory: got a request for 4611686018427387904 bytes", [] {
    Tensor({1LL << 40, 1LL << 20});
  });
  expect_error<ShapeError>("[tensor] the size in bytes must fit into 63 bits: got [4611686018427387904] of float64",
                           [] { Tensor({1LL << 62}, DType::float64); });
  expect_error<ShapeError>("[shape] sizes must not be negative: got [-3]", [] { zeros({-3}); });
}

}  // namespace
}  // namespace carousel
