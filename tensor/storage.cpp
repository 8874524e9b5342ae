#include <carousel/tensor/error.h>
#include <carousel/tensor/storage.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

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

/// The blocks of one size that wait in the cache. The list lives in the blocks themselves, so that giving one back
/// allocates nothing and cannot fail.
class FreeBlocks {
 public:
  bool empty() const { return top_ == nullptr; }
  void push(void* block) { top_ = new (block) Link{top_}; }
  void* pop() {  // last in, first out: its memory is still warm
    Link* const block = top_;
    top_ = block->next;
    return block;
  }

  size_t size = 0;         // of each, in bytes
  uint64_t last_used = 0;  // when a block of this size was last taken or given back

 private:
  struct Link {
    Link* next;
  };
  Link* top_ = nullptr;
};

class StorageCache {
 public:
  void* take(size_t size) {
    {
      const std::lock_guard lock(mutex_);
      stats_.live_bytes += size;
      FreeBlocks& blocks = blocks_of(size);
      if (!blocks.empty()) {
        stats_.cached_bytes -= size;
        ++stats_.reused;
        return blocks.pop();
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
      note_peak();
      stats_.live_bytes -= size;
      FreeBlocks& blocks = blocks_of(size);
      if (keeps_blocks && make_room(size, blocks)) {
        blocks.push(block);
        stats_.cached_bytes += size;
        return;
      }
    }
    std::free(block);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    for (FreeBlocks& blocks : blocks_) release(blocks);
  }

  void set_cap(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    cap_ = bytes;
    while (stats_.cached_bytes > cap_) release(*coldest(nullptr));
  }

  StorageStats stats() {
    const std::lock_guard lock(mutex_);
    note_peak();
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.live_bytes;
  }

 private:
  /// Enough before the live bytes fall and before they are read: a request that failed is never seen here.
  void note_peak() { stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes); }

  /// The list for blocks of `size`, a size of block_size(); notes that it is in use.
  FreeBlocks& blocks_of(size_t size) {
    const auto exponent = static_cast<size_t>(std::bit_width(size)) - 1;
    FreeBlocks& blocks = blocks_[4 * exponent + (size >> (exponent - 2)) % 4];
    blocks.size = size;
    blocks.last_used = ++uses_;
    return blocks;
  }

  /// The list with blocks, other than `kept`, that has been out of use for longest; null when there is none.
  FreeBlocks* coldest(const FreeBlocks* kept) {
    FreeBlocks* found = nullptr;
    for (FreeBlocks& blocks : blocks_) {
      if (blocks.empty() || &blocks == kept) continue;
      if (found == nullptr || blocks.last_used < found->last_used) found = &blocks;
    }
    return found;
  }

  /// Whether `size` more bytes fit under the cap, after sizes that are no longer in use have gone where necessary.
  bool make_room(size_t size, const FreeBlocks& kept) {
    if (size > cap_) return false;
    while (stats_.cached_bytes > cap_ - size) {
      FreeBlocks* const victims = coldest(&kept);
      if (victims == nullptr) return false;
      release_one(*victims);
    }
    return true;
  }

  void release_one(FreeBlocks& blocks) {
    std::free(blocks.pop());
    stats_.cached_bytes -= blocks.size;
  }

  void release(FreeBlocks& blocks) {
    while (!blocks.empty()) release_one(blocks);
  }

  std::mutex mutex_;
  std::array<FreeBlocks, 4 * 41> blocks_;  // four sizes between powers of two, up to max_bytes
  uint64_t uses_ = 0;
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

void reset_storage_peak() { cache().reset_peak(); }

void trim_storage_cache() { cache().trim(); }

void set_storage_cache_cap(uint64_t bytes) { cache().set_cap(bytes); }

}  // namespace carousel
