#include <carousel/nn/growing.h>

#include <carousel/autograd/record.h>
#include <carousel/autograd/shape.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace carousel {
namespace {

// Goes with the storage as its deleter: what lies there, and how far it is taken. Every tensor in that storage begins
// where it does, and is shorter along `axis`.
struct Room {
  Shape shape;
  int64_t axis;
  std::shared_ptr<std::atomic<int64_t>> taken;  // positions along `axis`

  void operator()(Storage* storage) const { delete storage; }  // NOLINT: this is a deleter
};

// Whether `x` is all that lies there up to some position: then its size along the axis tells where it ends. (A view
// that begins further on is shorter than what is taken.)
bool fills(const Room& room, const Tensor& x, int64_t axis) {
  Shape whole = x.shape();
  whole[static_cast<int>(axis)] = room.shape[static_cast<int>(axis)];
  return axis == room.axis && whole == room.shape && x.strides() == contiguous_strides(room.shape);
}

// `past` with `count` more positions, which nobody has written to or will, or undefined when there is no room.
Tensor extended(const Tensor& past, int64_t count, int64_t axis) {
  const Room* const room = std::get_deleter<Room>(past.storage());
  int64_t end = past.size(axis);
  const bool free = room != nullptr && fills(*room, past, axis) && end + count <= room->shape[int(axis)] &&
                    room->taken->compare_exchange_strong(end, end + count);
  if (!free) return {};
  Shape shape = past.shape();
  shape[static_cast<int>(axis)] = end + count;
  return {past.storage(), 0, shape, past.strides(), past.dtype()};
}

// Like `past`, `positions` long along `axis`, with as much room again.
Tensor with_room(const Tensor& past, int64_t positions, int64_t axis) {
  constexpr int64_t least = 16;
  Shape shape = past.shape(), whole = past.shape();
  shape[static_cast<int>(axis)] = positions;
  whole[static_cast<int>(axis)] = std::max(least, 2 * positions);
  const auto bytes = static_cast<size_t>(numel(whole)) * size_of(past.dtype());
  const Room room{whole, axis, std::make_shared<std::atomic<int64_t>>(positions)};
  const std::shared_ptr<Storage> storage(new Storage(bytes), room);
  return {storage, 0, shape, contiguous_strides(whole), past.dtype()};
}

}  // namespace

Tensor grow(const Tensor& past, const Tensor& more, int64_t axis) {
  const int64_t before = past.size(axis), count = more.size(axis);
  Tensor grown = extended(past, count, axis);
  if (!grown.defined()) {
    grown = with_room(past, before + count, axis);
    grown.slice(axis, {.stop = before}).copy_(past);
  }
  grown.slice(axis, {.start = before}).copy_(more);
  return grown;
}

Variable grow(const Variable& past, const Variable& more, int64_t axis) {
  const std::array<Variable, 2> parts{past, more};
  if (!needs_grad(parts)) return grow(past.value(), more.value(), axis);
  return past.size(axis) == 0 && !past.requires_grad() ? more : concatenate(parts, axis);
}

}  // namespace carousel
