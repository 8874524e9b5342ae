#include "count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<uint64_t> of_all{0}, of_others{0};
const std::thread::id main_thread = std::this_thread::get_id();

}  // namespace

namespace carousel::test {

uint64_t allocations() { return of_all; }
uint64_t allocations_of_other_threads() { return of_others; }

}  // namespace carousel::test

// The forms for arrays call these. Those that do not throw are replaced too: under a sanitizer they are not built on
// the one that does.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++of_all;
  if (std::this_thread::get_id() != main_thread) ++of_others;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(size_t bytes) {
  if (void* const block = operator new(bytes, std::nothrow)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
