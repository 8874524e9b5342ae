#include <carousel/tensor/error.h>
#include <carousel/tensor/storage.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define CAROUSEL_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAROUSEL_ADDRESS_SANITIZER 1
#endif
#endif

namespace carousel {
namespace {

#ifdef CAROUSEL_ADDRESS_SANITIZER
constexpr bool keeps_blocks = false;  // so that the sanitizer sees a use after free
#else
constexpr bool keeps_blocks = true;
#endif

constexpr size_t alignment = 64;               // a cache line, and the widest vector
constexpr size_t max_bytes = size_t{1} << 40;  // sanitizers stop the process when asked for more

/// Rounds up to one of four sizes between powers of two, so that blocks of nearly equal sizes serve one another.
size_t block_size(size_t bytes) {
  const size_t granule = std::max(alignment, std::bit_floor(bytes) / 4);
  return std::max((bytes + granule - 1) / granule * granule, alignment);
}

class StorageCache {
 public:
  void* take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      stats_.live_bytes += size;
      std::vector<void*>& blocks = blocks_[size];
      if (!blocks.empty()) {
        void* block = blocks.back();
        blocks.pop_back();
        stats_.cached_bytes -= size;
        ++stats_.reused;
        return block;
      }
      ++stats_.fresh;
    }
    void* block = std::aligned_alloc(alignment, size);
    if (block == nullptr) {
      trim();
      block = std::aligned_alloc(alignment, size);
    }
    if (block == nullptr) {
      const std::lock_guard lock(mutex_);
      stats_.live_bytes -= size;
      --stats_.fresh;
    }
    return block;
  }

  void give_back(void* block, size_t size) {
    {
      const std::lock_guard lock(mutex_);
      stats_.live_bytes -= size;
      if (keeps_blocks && size <= cap_ && stats_.cached_bytes <= cap_ - size) {
        blocks_[size].push_back(block);
        stats_.cached_bytes += size;
        return;
      }
    }
    std::free(block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    release_all();
  }

  void set_cap(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
    if (stats_.cached_bytes > cap_) release_all();
  }

  StorageStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void release_all() {
    for (auto& [size, blocks] : blocks_) {
      for (void* block : blocks) std::free(block);
      blocks.clear();
    }
    stats_.cached_bytes = 0;
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> blocks_;  // by size, last in first out: its memory is still warm
  StorageStats stats_;
  uint64_t cap_ = uint64_t{1} << 30;
};

/// Never destroyed, since tensors in static variables outlive any order of destruction.
StorageCache& cache() {
  static StorageCache& instance = *new StorageCache;
  return instance;
}

void* allocate(size_t bytes) {
  void* block = bytes <= max_bytes ? cache().take(block_size(bytes)) : nullptr;
  check<ValueError>(block != nullptr, "storage", "out of memory: got a request for {} bytes", bytes);
  return block;
}

}  // namespace

Storage::Storage(size_t bytes) : data_(allocate(bytes)), bytes_(bytes) {}

Storage::~Storage() { cache().give_back(data_, block_size(bytes_)); }

StorageStats storage_stats() { return cache().stats(); }

void trim_storage_cache() { cache().trim(); }

void set_storage_cache_cap(uint64_t bytes) { cache().set_cap(bytes); }

}  // namespace carousel
