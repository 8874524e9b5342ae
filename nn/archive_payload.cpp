#include <carousel/nn/archive_payload.h>

#include <carousel/tensor/dispatch.h>

#include <cereal/archives/portable_binary.hpp>

#include <limits>
#include <sstream>
#include <streambuf>

namespace carousel {
namespace {

using Writer = cereal::PortableBinaryOutputArchive;

void write_text(Writer& writer, const std::string& text) {
  writer(static_cast<uint64_t>(text.size()));
  writer.saveBinary<1>(text.data(), static_cast<std::streamsize>(text.size()));
}

void write_tensor(Writer& writer, const Tensor& tensor) {
  writer(static_cast<uint8_t>(tensor.dtype()), static_cast<uint64_t>(tensor.rank()));
  for (const int64_t size : tensor.shape()) writer(size);
  const Tensor plain = tensor.contiguous();
  dispatch_all(plain.dtype(), [&writer, &plain](auto type) {
    using T = decltype(type);
    writer.saveBinary<sizeof(T)>(plain.data<T>(), static_cast<std::streamsize>(plain.numel() * int64_t{sizeof(T)}));
  });
}

// A stream over memory that is already there.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string_view bytes) {
    char* begin = const_cast<char*>(bytes.data());  // streambuf's type; a get area is only read
    setg(begin, begin, begin + bytes.size());
  }
  uint64_t remaining() const { return static_cast<uint64_t>(egptr() - gptr()); }
};

class Reader {
 public:
  Reader(std::string_view payload, const std::string& path)
      : path_(path), buffer_(payload), stream_(&buffer_), archive_(stream_) {}

  template <class Number>
  Number number() {
    expect(sizeof(Number) <= buffer_.remaining(), "ends in the middle of a number");
    Number value{};
    archive_(value);
    return value;
  }

  // A number of things that take at least `bytes` each.
  uint64_t count(uint64_t bytes) {
    const auto value = number<uint64_t>();
    check<FormatError>(value <= buffer_.remaining() / bytes, "load", "{}: a count of {} does not fit in {} bytes",
                       path_, value, buffer_.remaining());
    return value;
  }

  std::string text() {
    std::string text(count(1), '\0');
    archive_.loadBinary<1>(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }

  Tensor tensor() {
    const auto code = number<uint8_t>();
    expect(code <= static_cast<uint8_t>(DType::boolean), "holds a number type that this version does not know");
    const DType dtype = static_cast<DType>(code);
    Tensor tensor(shape(size_of(dtype)), dtype);
    dispatch_all(dtype, [this, &tensor](auto type) {
      using T = decltype(type);
      archive_.loadBinary<sizeof(T)>(tensor.mutable_data<T>(),
                                     static_cast<std::streamsize>(tensor.numel() * int64_t{sizeof(T)}));
    });
    return tensor;
  }

  void expect(bool holds, std::string_view fault) const { check<FormatError>(holds, "load", "{} {}", path_, fault); }

  void expect_end() const { expect(buffer_.remaining() == 0, "has bytes after its last entry"); }

 private:
  // Sizes whose product, times `element_bytes`, fits into what is left.
  Shape shape(uint64_t element_bytes) {
    const auto rank = number<uint64_t>();
    expect(rank <= Dims::max_rank, "holds a tensor with too many axes");
    Shape shape;
    for (uint64_t axis = 0; axis < rank; ++axis) {
      shape.push_back(number<int64_t>());
      expect(shape.back() >= 0, "holds a tensor with a negative size");
    }
    expect(elements(shape) <= buffer_.remaining() / element_bytes, "holds a tensor larger than itself");
    return shape;
  }

  // Saturates instead of wrapping.
  static uint64_t elements(const Shape& shape) {
    uint64_t product = 1;
    for (const int64_t size : shape) {
      if (size == 0) return 0;
      const auto factor = static_cast<uint64_t>(size);
      const uint64_t most = std::numeric_limits<uint64_t>::max();
      product = product > most / factor ? most : product * factor;
    }
    return product;
  }

  const std::string& path_;
  MemoryBuffer buffer_;
  std::istream stream_;
  cereal::PortableBinaryInputArchive archive_;
};

}  // namespace

std::string encode_payload(const Archive& archive) {
  std::ostringstream stream;
  {
    Writer writer(stream);
    writer(static_cast<uint64_t>(archive.texts.size()));
    for (const auto& [name, text] : archive.texts) {
      write_text(writer, name);
      write_text(writer, text);
    }
    writer(static_cast<uint64_t>(archive.tensors.size()));
    for (const auto& [name, tensor] : archive.tensors) {
      write_text(writer, name);
      write_tensor(writer, tensor);
    }
  }
  return std::move(stream).str();
}

Archive decode_payload(std::string_view payload, const std::string& path) {
  check<FormatError>(!payload.empty(), "load", "{} holds nothing", path);  // cereal reads its endianness byte at once
  Reader reader(payload, path);
  Archive archive;
  archive.source = path;
  constexpr uint64_t least_bytes = 16;  // of an entry: two lengths
  for (uint64_t left = reader.count(least_bytes); left > 0; --left) {
    std::string name = reader.text();
    std::string text = reader.text();
    reader.expect(archive.texts.emplace(std::move(name), std::move(text)).second, "holds a text twice");
  }
  for (uint64_t left = reader.count(least_bytes); left > 0; --left) {
    std::string name = reader.text();
    Tensor tensor = reader.tensor();
    reader.expect(archive.tensors.emplace(std::move(name), std::move(tensor)).second, "holds a tensor twice");
  }
  reader.expect_end();
  return archive;
}

}  // namespace carousel
