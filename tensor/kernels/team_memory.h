#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace carousel::kernels {

/// What the threads of a call work in, a share each. Keep it as a thread_local of the thread that calls: it grows to
/// what the largest call needed, and stays.
class TeamMemory {
 public:
  /// Room for `shares` shares of `share_size` bytes, each beginning at a page. Throws std::bad_alloc, so call it before
  /// a parallel region.
  void reserve(int64_t shares, size_t share_size) {
    constexpr size_t page = 4096;
    share_size_ = (share_size + page - 1) / page * page;
    const size_t wanted = static_cast<size_t>(shares) * share_size_;
    if (wanted <= size_) return;
    size_ = 0;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, wanted)));
    if (!memory_) throw std::bad_alloc();
    size_ = wanted;
  }
  std::byte* of_share(int64_t share) const { return memory_.get() + static_cast<size_t>(share) * share_size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t size_ = 0, share_size_ = 0;
};

}  // namespace carousel::kernels
