#include <carousel/nn/digest.h>

#include <gtest/gtest.h>

namespace carousel {
namespace {

TEST(Sha256, IsTheStandards) {  // the examples of FIPS 180-4
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, TakesBytesPieceByPiece) {
  Sha256 sum;
  for (const char* const piece : {"a", "", "bc"}) sum.add(piece);
  EXPECT_EQ(to_hex(sum.digest()), sha256_hex("abc"));
}

}  // namespace
}  // namespace carousel
