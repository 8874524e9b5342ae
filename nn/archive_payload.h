#pragma once

#include <carousel/nn/archive.h>

#include <cstdint>
#include <streambuf>
#include <string>
#include <string_view>

namespace carousel {

/// The inside of an archive file: counts, names, texts, shapes and numbers, through cereal's portable binary archive.
/// Throws ValueError for more entries than can be read again.
std::string encode_payload(const Archive& archive);

/// Reads the next `bytes` of `payload`, which must hold them. Throws FormatError naming `path`. Every count is held
/// against the bytes that are left before memory is asked for, and there are at most 65536 entries: whatever the bytes
/// say, memory stays within their number and 100 MB.
Archive decode_payload(std::streambuf& payload, uint64_t bytes, const std::string& path);
Archive decode_payload(std::string_view payload, const std::string& path);

}  // namespace carousel
