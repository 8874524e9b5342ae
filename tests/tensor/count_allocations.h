#pragma once

#include <cstdint>

namespace carousel::test {

/// Calls of operator new so far in this program (count_allocations.cpp replaces it); 0 under a
/// sanitizer.
uint64_t allocations();
/// Those of them made by other threads than the one that runs the tests.
uint64_t allocations_of_other_threads();

}  // namespace carousel::test
