#pragma once

#include <carousel/autograd/variable.h>

namespace carousel {

/// Differentiable form of tensor/matmul.h, batched and broadcast.
Variable matmul(const Variable& a, const Variable& b);

/// y = x W^T + b: x [.., D], W [H, D], b [H] or undefined -> [.., H], laid out in memory in the order of x's rows
/// (a time-major view gives a time-major view). Saves W and x, but not an x that is cheap to make again: the result of
/// a normalisation, GELU or the SiLU gate.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias);

}  // namespace carousel
