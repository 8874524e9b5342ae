#pragma once

#include <gtest/gtest.h>

#include <string>

namespace carousel::test {

/// `body` throws an E whose text holds every one of `parts`: operation, rule, values.
template <class E, class Body>
void expect_error(const Body& body, std::initializer_list<const char*> parts) {
  try {
    body();
    FAIL() << "nothing was thrown";
  } catch (const E& error) {
    for (const char* part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "'" << part << "' in: " << error.what();
    }
  }
}

}  // namespace carousel::test
