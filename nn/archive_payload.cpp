#include <carousel/nn/archive_payload.h>

#include <carousel/tensor/dispatch.h>

#include <cereal/archives/portable_binary.hpp>

#include <algorithm>
#include <limits>
#include <sstream>
#include <type_traits>

namespace carousel {
namespace {

using Writer = cereal::PortableBinaryOutputArchive;

// An entry takes up to a kilobyte of memory, but may take 20 bytes of a file. Models that can be built have fewer.
constexpr uint64_t most_entries = 1 << 16;

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
};

class Reader {
 public:
  // cereal reads the first byte at once: it tells the byte order.
  Reader(std::streambuf& payload, uint64_t bytes, const std::string& path)
      : path_(path), remaining_(bytes - 1), stream_(&payload), archive_(stream_) {}

  template <class Number>
  Number number() {
    expect(sizeof(Number) <= remaining_, "ends in the middle of a number");
    Number value{};
    archive_(value);
    remaining_ -= sizeof(Number);
    return value;
  }

  // A number of things that take at least `bytes` each.
  uint64_t count(uint64_t bytes) {
    const auto value = number<uint64_t>();
    check<FormatError>(value <= remaining_ / bytes, "load", "{}: a count of {} does not fit in {} bytes", path_, value,
                       remaining_);
    return value;
  }

  uint64_t entries() {
    constexpr uint64_t least_bytes = 16;  // two lengths
    const uint64_t value = count(least_bytes);
    check<FormatError>(value <= most_entries, "load", "{} must hold at most {} entries of a kind: got {}", path_,
                       most_entries, value);
    return value;
  }

  std::string text() {
    std::string text(count(1), '\0');
    load<char>(text.data(), text.size());
    return text;
  }

  Tensor tensor() {
    const auto code = number<uint8_t>();
    expect(code <= static_cast<uint8_t>(DType::boolean), "holds a number type that this version does not know");
    const DType dtype = static_cast<DType>(code);
    Tensor tensor(shape(size_of(dtype)), dtype);
    dispatch_all(dtype, [this, &tensor](auto type) {
      using T = decltype(type);
      load(tensor.mutable_data<T>(), static_cast<uint64_t>(tensor.numel()));
    });
    return tensor;
  }

  void expect(bool holds, std::string_view fault) const { check<FormatError>(holds, "load", "{} {}", path_, fault); }

  void expect_end() const { expect(remaining_ == 0, "has bytes after its last entry"); }

 private:
  template <class T>
  void load(T* values, uint64_t count) {
    const uint64_t bytes = count * sizeof(T);
    archive_.template loadBinary<sizeof(T)>(values, static_cast<std::streamsize>(bytes));
    remaining_ -= bytes;
    if constexpr (std::is_same_v<T, bool>) expect_truth_values(reinterpret_cast<const unsigned char*>(values), count);
  }

  // A bool with another value is undefined behaviour wherever it is read.
  void expect_truth_values(const unsigned char* bytes, uint64_t count) const {
    expect(std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte <= 1; }),
           "holds a truth value that is neither 0 nor 1");
  }

  // Sizes whose product, times `element_bytes`, fits into what is left.
  Shape shape(uint64_t element_bytes) {
    const auto rank = number<uint64_t>();
    expect(rank <= Dims::max_rank, "holds a tensor with too many axes");
    Shape shape;
    for (uint64_t axis = 0; axis < rank; ++axis) {
      shape.push_back(number<int64_t>());
      expect(shape.back() >= 0, "holds a tensor with a negative size");
    }
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    expect(empty || elements(shape) <= remaining_ / element_bytes, "holds a tensor larger than itself");
    expect(elements(shape) <= most_elements, "holds a tensor whose strides would be too large");
    return shape;
  }

  static constexpr uint64_t most_elements = std::numeric_limits<int64_t>::max();

  // Without sizes of zero, as strides are made. Saturates instead of wrapping.
  static uint64_t elements(const Shape& shape) {
    uint64_t product = 1;
    for (const int64_t size : shape) {
      const auto factor = static_cast<uint64_t>(std::max<int64_t>(size, 1));
      const uint64_t most = std::numeric_limits<uint64_t>::max();
      product = product > most / factor ? most : product * factor;
    }
    return product;
  }

  const std::string& path_;
  uint64_t remaining_;
  std::istream stream_;
  cereal::PortableBinaryInputArchive archive_;
};

}  // namespace

std::string encode_payload(const Archive& archive) {
  const uint64_t entries = std::max(archive.texts.size(), archive.tensors.size());
  check<ValueError>(entries <= most_entries, "archive", "must hold at most {} entries of a kind: got {}", most_entries,
                    entries);
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

Archive decode_payload(std::streambuf& payload, uint64_t bytes, const std::string& path) {
  check<FormatError>(bytes > 0, "load", "{} holds nothing", path);
  const int order = payload.sgetc();
  check<FormatError>(order == 0 || order == 1, "load", "{} has a byte order that is not known: got {}", path, order);
  Reader reader(payload, bytes, path);
  Archive archive;
  archive.source = path;
  for (uint64_t left = reader.entries(); left > 0; --left) {
    std::string name = reader.text();
    std::string text = reader.text();
    reader.expect(archive.texts.emplace(std::move(name), std::move(text)).second, "holds a text twice");
  }
  for (uint64_t left = reader.entries(); left > 0; --left) {
    std::string name = reader.text();
    Tensor tensor = reader.tensor();
    reader.expect(archive.tensors.emplace(std::move(name), std::move(tensor)).second, "holds a tensor twice");
  }
  reader.expect_end();
  return archive;
}

Archive decode_payload(std::string_view payload, const std::string& path) {
  MemoryBuffer buffer(payload);
  return decode_payload(buffer, payload.size(), path);
}

}  // namespace carousel
