#pragma once

#include <carousel/tensor/dims.h>
#include <carousel/tensor/dtype.h>
#include <carousel/tensor/error.h>
#include <carousel/tensor/storage.h>

#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace carousel {

/// Half-open range of positions along one axis, `start, start + step, ...` before `stop`. Negative positions count
/// from the end; both ends are clamped to the axis, as in NumPy.
struct Slice {
  int64_t start = 0;
  int64_t stop = std::numeric_limits<int64_t>::max();
  int64_t step = 1;  // > 0
};

/// An N-dimensional array: a shape, strides and an offset into a shared Storage. Copying a Tensor copies the handle,
/// never the numbers; views share them. A default Tensor is undefined: it holds nothing, and only `defined` may be
/// asked of it.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised, row-major. Throws ShapeError for negative or too large sizes.
  explicit Tensor(Shape shape, DType dtype = DType::float32);
  /// A view of `storage`; the caller vouches that it fits. `offset` and `strides` in elements.
  Tensor(std::shared_ptr<Storage> storage, int64_t offset, Shape shape, Dims strides, DType dtype);

  template <class T>
  static Tensor from(std::span<const T> values, Shape shape);  ///< copies; throws ShapeError when counts differ
  template <class T>
  static Tensor from(const std::vector<T>& values, Shape shape);  ///< the same; also for std::vector<bool>
  template <class T>
  static Tensor from(const std::vector<T>& values) {  ///< shape [N]
    return from(values, {static_cast<int64_t>(values.size())});
  }
  /// The same from numbers; throws ValueError where the dtype cannot hold one.
  static Tensor from(std::initializer_list<double> values, Shape shape, DType dtype = DType::float32);
  static Tensor scalar(double value, DType dtype = DType::float32);  ///< shape []

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Dims& strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  DType dtype() const { return dtype_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int64_t axis) const;  ///< throws IndexError
  int64_t numel() const { return numel_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  bool is_contiguous() const;
  uint64_t version() const { return storage_->version(); }

  /// Address of the first element. `mutable_data` is for writers: it counts as an in-place change. Throws ValueError
  /// when T is not the element type.
  template <class T>
  const T* data() const;
  template <class T>
  T* mutable_data();

  template <class T = double>
  T item() const;  ///< the one element, converted; throws ShapeError unless numel() == 1
  template <class T>
  std::vector<T> to_vector() const;  ///< row-major copy; throws ValueError when T is not the element type

  // Views, of any dtype: no numbers are copied. Axes count from the end when negative; throw IndexError for an axis
  // that is not there.
  Tensor slice(int64_t axis, Slice range) const;         ///< throws ValueError unless the step is positive
  Tensor select(int64_t axis, int64_t index) const;      ///< drops the axis; negative index from the end; IndexError
  Tensor transpose(int64_t axis1, int64_t axis2) const;  ///< the two axes swapped
  Tensor permute(const Dims& axes) const;                ///< axis i of the result is axes[i]; throws ShapeError unless
                                                         ///< each axis is named once
  Tensor unsqueeze(int64_t axis) const;                  ///< a new axis of size 1 before `axis`, in [-rank-1, rank]
  Tensor squeeze(int64_t axis) const;                    ///< throws ShapeError unless the axis has size 1
  /// Broadcasts axes of size 1 (stride 0) and adds leading ones; -1 keeps a size. Throws ShapeError for other changes.
  Tensor expand(const Shape& shape) const;
  /// One size may be -1. A view where the strides allow, else a contiguous copy. Throws ShapeError unless the number of
  /// elements stays.
  Tensor reshape(const Shape& shape) const;
  /// A view like reshape, or nullopt where the strides do not allow one.
  std::optional<Tensor> view(const Shape& shape) const;

  Tensor contiguous() const;  ///< itself when it is row-major, else a copy
  Tensor clone() const;       ///< a row-major copy
  /// Itself when nothing changes, else a converted copy: to bool x != 0, to int64 without the fraction. Throws
  /// ValueError where int64 cannot hold a number (NaN, infinities, beyond 2^63).
  Tensor to(DType dtype) const;

  // In-place changes. They count a new version, and refuse (ValueError) to write to a tensor whose elements overlap
  // one another (an expanded view).
  Tensor& fill_(double value);  ///< throws ValueError where the dtype cannot hold it
  /// Broadcasts (ShapeError otherwise) and converts the source as `to` does; safe when the two overlap.
  Tensor& copy_(const Tensor& source);

 private:
  std::shared_ptr<Storage> storage_;
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  Shape shape_;
  Dims strides_;
  DType dtype_ = DType::float32;
};

/// Throws ValueError when two elements of `x` may share an address (every expanded view; no other view made here).
void check_writable(std::string_view operation, const Tensor& x);

/// Whether the two may touch the same memory (by the address ranges they span).
bool may_overlap(const Tensor& a, const Tensor& b);

}  // namespace carousel
