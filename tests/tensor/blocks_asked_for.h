#pragma once

#include <carousel/tensor/storage.h>

namespace carousel::test {

/// Blocks of memory that tensors have asked for so far: how many an operation takes tells whether it copies.
inline uint64_t blocks_asked_for() {
  const StorageStats stats = storage_stats();
  return stats.fresh + stats.reused;
}

}  // namespace carousel::test
