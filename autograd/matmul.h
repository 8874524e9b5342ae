#pragma once

#include <carousel/autograd/variable.h>

namespace carousel {

/// Differentiable form of tensor/matmul.h, batched and broadcast.
Variable matmul(const Variable& a, const Variable& b);

/// y = x W^T + b: x [.., D], W [H, D], b [H] or undefined -> [.., H], laid out in memory in the order of x's rows
/// (a time-major view gives a time-major view). Saves x and W.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias);

}  // namespace carousel
