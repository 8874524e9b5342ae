#include "count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<uint64_t> of_all{0}, of_others{0};
[[maybe_unused]] const std::thread::id main_thread = std::this_thread::get_id();

}  // namespace

namespace carousel::test {

uint64_t allocations() { return of_all; }
uint64_t allocations_of_other_threads() { return of_others; }

}  // namespace carousel::test

#if !defined(CAROUSEL_SANITIZED)  // a sanitizer has an operator new of its own; there nothing is counted
// The other forms of new and delete call these.
void* operator new(size_t bytes) {
  ++of_all;
  if (std::this_thread::get_id() != main_thread) ++of_others;
  if (void* const block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
#endif
