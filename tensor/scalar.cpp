#include <carousel/tensor/dispatch.h>
#include <carousel/tensor/scalar.h>

namespace carousel {

Scalar::Scalar(std::string_view operation, double value, DType dtype)
    : Scalar(dispatch_all(dtype, [&](auto type) { return Scalar(scalar_cast<decltype(type)>(operation, value)); })) {}

}  // namespace carousel
