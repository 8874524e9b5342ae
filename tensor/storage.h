#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace carousel {

/// A block of memory that tensors share. It counts its in-place changes, so that a value saved for backward can tell
/// whether it is still what it was. 64-byte aligned; from and back to the storage cache.
class Storage {
 public:
  explicit Storage(size_t bytes);  ///< contents undefined; throws ValueError when memory is out
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void* data_;
  size_t bytes_;
  std::atomic<uint64_t> version_{0};
};

/// What the storage cache has done since the program began. In a training loop in steady state `fresh` stands still.
struct StorageStats {
  uint64_t fresh = 0;         ///< blocks asked of the operating system
  uint64_t reused = 0;        ///< blocks served from the cache
  uint64_t cached_bytes = 0;  ///< waiting in the cache now
  uint64_t live_bytes = 0;    ///< held by tensors now
  uint64_t peak_bytes = 0;    ///< the most that tensors held at once, since the last reset_storage_peak()
};

StorageStats storage_stats();

/// The peak counts anew, from what tensors hold now: what it reaches until it is read is the memory of one step.
void reset_storage_peak();

/// Returns the cached blocks to the operating system.
void trim_storage_cache();

/// At most this many bytes are kept (default 1 GiB); blocks of the sizes that have been out of use for longest make
/// room for others. Under AddressSanitizer the cache keeps nothing, so that a use after free is seen.
void set_storage_cache_cap(uint64_t bytes);

}  // namespace carousel
