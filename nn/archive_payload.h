#pragma once

#include <carousel/nn/archive.h>

#include <string>
#include <string_view>

namespace carousel {

/// The inside of an archive file: counts, names, texts, shapes and numbers, through cereal's portable binary archive.
std::string encode_payload(const Archive& archive);

/// Throws FormatError naming `path`. Every count is held against the bytes that are left before memory is asked for.
Archive decode_payload(std::string_view payload, const std::string& path);

}  // namespace carousel
