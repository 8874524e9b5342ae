#include <carousel/nn/digest.h>

#include <fmt/format.h>
#include <sha2.h>

namespace carousel {

struct Sha256::Context {
  SHA2_CTX of;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { SHA256Init(&context_->of); }
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  SHA256Update(&context_->of, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Sha256::digest() {
  std::string bytes(SHA256_DIGEST_LENGTH, '\0');
  SHA256Final(reinterpret_cast<uint8_t*>(bytes.data()), &context_->of);
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return to_hex(sum.digest());
}

}  // namespace carousel
