#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/kernels/copy.h>
#include <carousel/tensor/kernels/map.h>
#include <carousel/tensor/operands.h>
#include <carousel/tensor/tensor.h>

#include <algorithm>

namespace carousel {
namespace {

size_t bytes_for(int64_t count, const Shape& shape, DType dtype) {
  int64_t bytes = 0;
  check<ShapeError>(!__builtin_mul_overflow(count, static_cast<int64_t>(size_of(dtype)), &bytes), "tensor",
                    "the size in bytes must fit into 63 bits: got {} of {}", shape, to_string(dtype));
  return static_cast<size_t>(bytes);
}

template <class T>
void check_type(const Tensor& x) {
  check_defined("data", x);
  check<ValueError>(dtype_of<T>() == x.dtype(), "data", "the type must be the tensor's {}: got {}",
                    to_string(x.dtype()), to_string(dtype_of<T>()));
}

/// NaN, infinities and large numbers have no int64; casting them would be undefined.
void check_convertible(std::string_view operation, const Tensor& x, DType to) {
  if (to != DType::int64 || !is_floating(x.dtype())) return;
  const bool bad = dispatch_floating(operation, x.dtype(), [&](auto type) {
    constexpr auto unfit = [](auto value) { return !fits_int64(static_cast<double>(value)); };
    return any_over(x, kernels::any1<decltype(unfit), decltype(type)>);
  });
  check<ValueError>(!bad, operation, "int64 holds numbers in [-2^63, 2^63): got {} values beyond",
                    to_string(x.dtype()));
}

}  // namespace

Tensor::Tensor(Shape shape, DType dtype)
    : numel_(carousel::numel(shape)), shape_(shape), strides_(contiguous_strides(shape)), dtype_(dtype) {
  storage_ = std::make_shared<Storage>(bytes_for(numel_, shape_, dtype));
}

Tensor::Tensor(std::shared_ptr<Storage> storage, int64_t offset, Shape shape, Dims strides, DType dtype)
    : storage_(std::move(storage)),
      offset_(offset),
      numel_(carousel::numel(shape)),
      shape_(shape),
      strides_(strides),
      dtype_(dtype) {
  check_defined("view", *this);
}

template <class T>
Tensor Tensor::from(std::span<const T> values, Shape shape) {
  check<ShapeError>(carousel::numel(shape) == static_cast<int64_t>(values.size()), "from",
                    "the shape must hold as many elements as there are values: got {} and {}", shape, values.size());
  Tensor result(shape, dtype_of<T>());
  std::copy(values.begin(), values.end(), result.mutable_data<T>());
  return result;
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, Shape shape) {
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> is no array of bool
    const auto array = std::make_unique<bool[]>(values.size());
    std::copy(values.begin(), values.end(), array.get());
    return from(std::span<const bool>(array.get(), values.size()), shape);
  } else {
    return from(std::span<const T>(values), shape);
  }
}

Tensor Tensor::from(std::initializer_list<double> values, Shape shape, DType dtype) {
  return dispatch_all(dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<T> converted;
    converted.reserve(values.size());
    for (double value : values) converted.push_back(scalar_cast<T>("from", value));
    return from(converted, shape);
  });
}

Tensor Tensor::scalar(double value, DType dtype) { return from({value}, {}, dtype); }

int64_t Tensor::size(int64_t axis) const { return shape_[normalize_axis("size", axis, rank())]; }

bool Tensor::is_contiguous() const {
  int64_t expected = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] == 1) continue;
    if (strides_[axis] != expected) return numel_ == 0;
    expected *= shape_[axis];
  }
  return true;
}

template <class T>
const T* Tensor::data() const {
  check_type<T>(*this);
  return static_cast<const T*>(storage_->data()) + offset_;
}

template <class T>
T* Tensor::mutable_data() {
  check_type<T>(*this);
  storage_->bump_version();
  return static_cast<T*>(storage_->data()) + offset_;
}

template <class T>
T Tensor::item() const {
  check<ShapeError>(numel_ == 1, "item", "needs a tensor of one element: got shape {}", shape_);
  return dispatch_all(dtype_, [&](auto type) {
    const auto value = *data<decltype(type)>();
    if constexpr (std::is_same_v<T, int64_t> && std::is_floating_point_v<decltype(type)>) {
      check<ValueError>(fits_int64(value), "item", "int64 holds numbers in [-2^63, 2^63): got {}", value);
    }
    return static_cast<T>(value);
  });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_type<T>(*this);
  const Tensor dense = contiguous();
  return std::vector<T>(dense.data<T>(), dense.data<T>() + numel_);
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  check_defined("clone", *this);
  Tensor result(shape_, dtype_);
  run_over<2>(result, kernels::copy_body(dtype_, dtype_), {result, *this});
  return result;
}

Tensor Tensor::to(DType dtype) const {
  check_defined("to", *this);
  if (dtype == dtype_) return *this;
  check_convertible("to", *this, dtype);
  Tensor result(shape_, dtype);
  run_over<2>(result, kernels::copy_body(dtype, dtype_), {result, *this});
  return result;
}

Tensor& Tensor::fill_(double value) {
  check_writable("fill_", *this);
  Scalar scalar("fill_", value, dtype_);
  storage_->bump_version();
  run_over<2>(*this, kernels::copy_body(dtype_, dtype_), {*this, scalar});
  return *this;
}

Tensor& Tensor::copy_(const Tensor& source) {
  check_writable("copy_", *this);
  check_defined("copy_", source);
  check<ShapeError>(broadcast_shapes("copy_", shape_, source.shape_) == shape_, "copy_",
                    "the source must broadcast to the target's shape: got {} and {}", source.shape_, shape_);
  check_convertible("copy_", source, dtype_);
  const Tensor apart = apart_from(*this, source);
  storage_->bump_version();
  run_over<2>(*this, kernels::copy_body(dtype_, apart.dtype_), {*this, apart});
  return *this;
}

#define CAROUSEL_INSTANTIATE(T)                                  \
  template Tensor Tensor::from<T>(std::span<const T>, Shape);    \
  template Tensor Tensor::from<T>(const std::vector<T>&, Shape); \
  template const T* Tensor::data<T>() const;                     \
  template T* Tensor::mutable_data<T>();                         \
  template T Tensor::item<T>() const;                            \
  template std::vector<T> Tensor::to_vector<T>() const;
CAROUSEL_INSTANTIATE(float)
CAROUSEL_INSTANTIATE(double)
CAROUSEL_INSTANTIATE(int64_t)
CAROUSEL_INSTANTIATE(bool)
#undef CAROUSEL_INSTANTIATE

}  // namespace carousel
