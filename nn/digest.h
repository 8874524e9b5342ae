#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace carousel {

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  std::string digest();  ///< 32 bytes; ends it

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
std::string to_hex(std::string_view bytes);

}  // namespace carousel
