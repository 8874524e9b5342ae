#pragma once

// GCC 12 warns about its own <regex> where sanitizers are on (its bug 105562), at the end of the file that uses it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <regex>
